// From ink on a canvas to the picture that a network was trained on, and bytes as a picture.

/** The side of a square picture of this shape, or null. */
export function grid(shape) {
  const side = Math.sqrt(shape.reduce((a, b) => a * b, 1));
  return side === 8 || side === 28 ? side : null;
}

/** Darkness in [0, 1] of every pixel of a square canvas: {side, ink}. */
export function inkOf(canvas) {
  const { data } = canvas.getContext("2d", { willReadFrequently: true }).getImageData(0, 0, canvas.width, canvas.height);
  return { side: canvas.width, ink: Float64Array.from({ length: data.length / 4 }, (_, k) => 1 - data[4 * k] / 255) };
}

/** What is drawn as a box [left, top, right, bottom), or null. */
function boxOf({ side, ink }) {
  let box = null;
  ink.forEach((value, k) => {
    if (value < 0.5) return;
    const x = k % side, y = Math.floor(k / side);
    box ??= [x, y, x + 1, y + 1];
    box = [Math.min(box[0], x), Math.min(box[1], y), Math.max(box[2], x + 1), Math.max(box[3], y + 1)];
  });
  return box;
}

/** Mean ink over a cell of the picture. */
function mean({ side, ink }, left, top, size) {
  let sum = 0, count = 0;
  for (let y = Math.floor(top); y < top + size; y++)
    for (let x = Math.floor(left); x < left + size; x++, count++)
      if (x >= 0 && y >= 0 && x < side && y < side) sum += ink[y * side + x];
  return sum / count;
}

/**
 * A flat picture of wanted x wanted values in [0, 1], the digit as large as in the training's: of 8 x 8 it
 * fills the height, of 28 x 28 twenty rows in the middle.
 */
export function pixels(picture, wanted) {
  const found = new Float64Array(wanted * wanted), box = boxOf(picture);
  if (box === null) return found;
  const [left, top, right, bottom] = box, rows = wanted === 8 ? 8 : 20;
  const cell = Math.max(right - left, bottom - top) / rows;
  const x0 = (left + right) / 2 - (cell * wanted) / 2, y0 = (top + bottom) / 2 - (cell * wanted) / 2;
  for (let y = 0; y < wanted; y++)
    for (let x = 0; x < wanted; x++) found[y * wanted + x] = mean(picture, x0 + x * cell, y0 + y * cell, cell);
  return found;
}

/** Bytes as grey pixels, from the middle of a file, where its numbers are. */
export function bytesPicture(canvas, bytes) {
  const { width, height } = canvas, image = new ImageData(width, height);
  const first = Math.max(0, Math.floor((bytes.length - width * height) / 2));
  for (let k = 0; k < width * height; k++) {
    const grey = bytes[first + k] ?? 255;
    image.data.set([grey, grey, grey, 255], 4 * k);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}
