// Rows of numbers from the text of a CSV file, and back. The file stays in the page.
import { ParameterError } from "./errors.mjs";

const MOST_ROWS = 10_000, MOST_BYTES = 1 << 26;

/** Cells of a text: commas, semicolons or tabs between them, quotes around those that have one. */
function cellsOf(text) {
  const first = text.slice(0, (text.search(/[\r\n]/) + 1 || text.length + 1) - 1);
  const between = [",", ";", "\t"].reduce((a, b) => (first.split(b).length > first.split(a).length ? b : a));
  const rows = [[]];
  let cell = "", quoted = false, some = false;
  const endCell = () => {
    rows.at(-1).push(cell.trim());
    cell = "";
  };
  const endRow = () => {
    if (some) {
      endCell();
      rows.push([]);
    }
    some = false;
  };
  for (let k = 0; k < text.length; k++) {
    const c = text[k];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[k + 1] === '"') cell += text[k++];
      else quoted = false;
    } else if (c === '"') quoted = some = true;
    else if (c === between) (some = true), endCell();
    else if (c === "\n" || c === "\r") endRow();
    else {
      cell += c;
      if (c.trim() !== "") some = true;
    }
  }
  if (quoted) throw new ParameterError("a quote that does not end", {});
  endRow();
  rows.pop();
  return rows;
}

const isNumber = (cell) => cell !== "" && Number.isFinite(Number(cell));

/**
 * Samples of `size` numbers, one a row. A first row that is no numbers has names and is skipped; a column more than
 * `size`, the last, has labels, which are compared with the answers here and sent nowhere.
 * @param {{size: number, bound: number, divisor?: number}} wanted numbers over the divisor are at most the bound
 * @returns {{samples: Float64Array[], labels: string[]|null}}
 * @throws {ParameterError} which names row and column, counted from 1, and prints no number
 */
export function samplesOf(text, { size, bound, divisor = 1 }) {
  if (!(Number.isFinite(divisor) && divisor > 0)) throw new ParameterError("the divisor must be a positive number", {});
  if (text.length > MOST_BYTES) throw new ParameterError(`more than ${MOST_BYTES} characters`, { limit: MOST_BYTES });
  const rows = cellsOf(text.replace(/^\ufeff/, ""));
  const named = rows.length > 0 && !rows[0].slice(0, size).every(isNumber);
  const body = named ? rows.slice(1) : rows;
  if (body.length === 0 || body.length > MOST_ROWS)
    throw new ParameterError(`${body.length} rows of numbers, expected 1 to ${MOST_ROWS}`, { rows: body.length, limit: MOST_ROWS });
  const columns = body[0].length;
  if (columns !== size && columns !== size + 1)
    throw new ParameterError(`${columns} columns, expected ${size}, or ${size + 1} with a label`, { columns, expected: size });
  const samples = body.map((cells, r) => {
    const row = r + 1 + (named ? 1 : 0);
    if (cells.length !== columns)
      throw new ParameterError(`row ${row} has ${cells.length} columns, others have ${columns}`, { row, columns: cells.length });
    return Float64Array.from({ length: size }, (_, k) => {
      const value = isNumber(cells[k]) ? Number(cells[k]) / divisor : NaN;
      if (!(Math.abs(value) <= bound))
        throw new ParameterError(`row ${row}, column ${k + 1}: no number within the program's range of ${bound}`, { row, column: k + 1, bound });
      return value;
    });
  });
  return { samples, labels: columns > size ? body.map((cells) => cells[size]) : null };
}

const largest = (scores) => scores.indexOf(Math.max(...scores));

/** Of each row of scores its class, where there are several scores, and the number of right ones. */
export function classesOf(results, labels) {
  const classes = results.map((scores) => (scores.length > 1 ? largest(Array.from(scores)) : null));
  const right = labels === null ? null : classes.filter((c, k) => c !== null && isNumber(labels[k]) && c === Number(labels[k])).length;
  return { classes, right };
}

/** A CSV file of results: row, class where there is one, scores. */
export function csvOf(results) {
  const { classes } = classesOf(results, null), several = classes[0] !== null;
  const names = ["row", ...(several ? ["class"] : []), ...Array.from(results[0], (_, k) => `score${k}`)];
  const lines = results.map((scores, k) => [k + 1, ...(several ? [classes[k]] : []), ...scores].join(","));
  return [names.join(","), ...lines, ""].join("\n");
}
