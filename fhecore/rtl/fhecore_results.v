// Result side of the FHECore unit: BUFS tile buffers between the array's column buses and the result beats.
//
// A tile reserves a buffer when it starts, so nothing that is in the array can be stopped by a slow reader.
// Words are shifted right by their column's s on entry (small moduli) and read as 0 in a faulty column.
// Beats leave in tile order, D0 first, each as soon as its own words are there: the words of a tile arrive in
// anti-diagonals, row + column = 0, 1, .. R+C-2, one a cycle, and a beat waits for its latest one.
`default_nettype none

module fhecore_results #(
    parameter W = 32,
    parameter R = 16,
    parameter C = 8,
    parameter LANES = 32,
    parameter PTX = 1,
    parameter SHIFT_BITS = 5,
    parameter TAG_BITS = 8,
    parameter BUFS = 3,
    parameter BUF_BITS = 2
) (
    input  wire                    clk,
    input  wire                    rst,
    // a tile starts: it takes buffer `next`
    output wire                    free,          // the next buffer is free
    output wire [BUF_BITS-1:0]     next,
    input  wire                    start,
    input  wire [TAG_BITS-1:0]     start_tag,
    input  wire [C*SHIFT_BITS-1:0] start_shift,
    input  wire [C-1:0]            start_invalid,
    input  wire                    start_bank,
    output wire [1:0]              bank_busy,     // a started tile still needs the constants of the bank
    // while it streams
    input  wire                    run,
    input  wire                    run_last,      // last cycle: its faults are known after it
    input  wire [BUF_BITS-1:0]     run_buf,
    input  wire [C-1:0]            overflow,
    // from the array
    input  wire [C*W-1:0]          d_bus,
    input  wire [C-1:0]            d_valid,
    // result beats
    output wire                    res_valid,
    input  wire                    res_ready,
    output wire [TAG_BITS-1:0]     res_tag,
    output wire [C-1:0]            res_fault,
    output wire [LANES*W-1:0]      res_data,
    output wire                    res_last
);
    localparam BEATS = R * C / LANES;
    localparam BEAT_BITS = (BEATS < 2) ? 1 : $clog2(BEATS);
    localparam ROW_BITS = $clog2(R);
    localparam BOTTOM = R - 1;
    localparam LAST_BEAT = BEATS - 1;
    localparam LAST_BUF = BUFS - 1;
    localparam DIAGONALS = R + C - 1;
    localparam DIAG_BITS = $clog2(DIAGONALS + 1);
    // The tile's last element takes its last step in the cycle in which DIAGONALS - 2 have arrived: the bank
    // may change at its end. bank_busy falls a cycle earlier; a tile that waits for it starts in that cycle,
    // as the verdict on the bank is registered, and loads the bank an edge later: one cycle is to spare.
    localparam BANK_DONE = (DIAGONALS > 3) ? DIAGONALS - 3 : 1;

    // Word w of a result: row and column (the fragment of C; see fhecore_operand.v).
    function integer row_of;
        input integer w;
        row_of = (PTX == 0) ? w / C : (w % LANES) / 4 + 8 * (w / LANES / 2);
    endfunction
    function integer column_of;
        input integer w;
        column_of = (PTX == 0) ? w % C : 2 * (w % 4) + (w / LANES) % 2;
    endfunction
    function integer latest_of;  // largest diagonal of a beat
        input integer beat;
        integer l;
        begin
            latest_of = 0;
            for (l = beat * LANES; l < (beat + 1) * LANES; l = l + 1)
                if (row_of(l) + column_of(l) > latest_of) latest_of = row_of(l) + column_of(l);
        end
    endfunction

    function [BUF_BITS-1:0] after;
        input [BUF_BITS-1:0] b;
        after = (b == LAST_BUF[BUF_BITS-1:0]) ? {BUF_BITS{1'b0}} : b + 1'b1;
    endfunction

    // ---- state of the buffers ----
    reg [BUFS-1:0]               active;    // from start until the last beat has left
    reg [BUFS-1:0]               sealed;    // streaming is over
    reg [BUFS*DIAG_BITS-1:0]     diagonals; // arrived
    reg [BUFS*C-1:0]             fault;
    reg [BUFS*TAG_BITS-1:0]      tag;
    reg [BUFS*C*SHIFT_BITS-1:0]  shift;
    reg [BUFS-1:0]               bank;
    reg [BUF_BITS-1:0]           alloc;     // for the next tile
    reg [BUF_BITS-1:0]           drain;     // being read
    reg [BEAT_BITS-1:0]          beat;
    wire [BUF_BITS-1:0]          land;      // where the next element of column 0 goes
    wire                         land_top;  // it is of row 0

    assign free = ~active[alloc];
    assign next = alloc;
    wire leave = res_valid & res_ready & res_last;
    wire [BUFS-1:0] needs_bank;
    always @(posedge clk) begin
        if (rst) begin
            active <= {BUFS{1'b0}};
            alloc <= {BUF_BITS{1'b0}};
            drain <= {BUF_BITS{1'b0}};
            beat <= {BEAT_BITS{1'b0}};
        end else begin
            if (start) begin
                active[alloc] <= 1'b1;
                alloc <= after(alloc);
            end
            if (leave) begin
                active[drain] <= 1'b0;
                drain <= after(drain);
            end
            if (res_valid & res_ready) beat <= res_last ? {BEAT_BITS{1'b0}} : beat + 1'b1;
        end
    end

    genvar u, j, i, n;
    generate
        for (u = 0; u < BUFS; u = u + 1) begin : buffer
            wire mine = start & (alloc == u);
            wire [DIAG_BITS-1:0] count = diagonals[u*DIAG_BITS +: DIAG_BITS];
            wire first = d_valid[0] & land_top & (land == u);
            wire streams = run & (run_buf == u);
            assign needs_bank[u] = active[u] & (count < BANK_DONE[DIAG_BITS-1:0]);
            always @(posedge clk) begin
                if (mine) begin
                    tag[u*TAG_BITS +: TAG_BITS] <= start_tag;
                    shift[u*C*SHIFT_BITS +: C*SHIFT_BITS] <= start_shift;
                    bank[u] <= start_bank;
                end
                if (mine) fault[u*C +: C] <= start_invalid;
                else if (streams) fault[u*C +: C] <= fault[u*C +: C] | overflow;
                if (mine) sealed[u] <= 1'b0;
                else if (streams & run_last) sealed[u] <= 1'b1;
                if (mine) diagonals[u*DIAG_BITS +: DIAG_BITS] <= {DIAG_BITS{1'b0}};
                else if (first | (count != 0 & count != DIAGONALS[DIAG_BITS-1:0]))
                    diagonals[u*DIAG_BITS +: DIAG_BITS] <= count + 1'b1;
            end
        end
    endgenerate
    assign bank_busy = {|(needs_bank & bank), |(needs_bank & ~bank)};

    // ---- words: one memory a column, a write a cycle ----
    wire [C*R*W-1:0] read;  // the drained buffer, column by column
    generate
        for (j = 0; j < C; j = j + 1) begin : column
            reg [ROW_BITS-1:0] at_row;
            reg [BUF_BITS-1:0] at_buf;
            reg [W-1:0]        words [0:(BUFS<<ROW_BITS)-1];
            // Looked up an edge ahead of the word; shifts stand since the tile's start.
            reg [SHIFT_BITS-1:0] s;
            wire bottom = d_valid[j] & (at_row == BOTTOM[ROW_BITS-1:0]);
            wire [BUF_BITS-1:0] next_at = bottom ? after(at_buf) : at_buf;
            always @(posedge clk) begin
                if (d_valid[j]) words[{at_buf, at_row}] <= d_bus[j*W +: W] >> s;
                s <= shift[(next_at*C + j)*SHIFT_BITS +: SHIFT_BITS];
                if (rst) begin
                    at_row <= {ROW_BITS{1'b0}};
                    at_buf <= {BUF_BITS{1'b0}};
                end else begin
                    if (d_valid[j]) at_row <= bottom ? {ROW_BITS{1'b0}} : at_row + 1'b1;
                    at_buf <= next_at;
                end
            end
            if (j == 0) begin : lead
                assign land = at_buf;
                assign land_top = (at_row == {ROW_BITS{1'b0}});
            end
            for (i = 0; i < R; i = i + 1) begin : row
                localparam [ROW_BITS-1:0] ROW = i;
                assign read[(j*R+i)*W +: W] = words[{drain, ROW}];
            end
        end
    endgenerate

    // ---- beats ----
    wire [BEATS*LANES*W-1:0] beats;
    wire [BEATS-1:0]         there;
    wire [DIAG_BITS-1:0]     arrived = diagonals[drain*DIAG_BITS +: DIAG_BITS];
    generate
        for (n = 0; n < R * C; n = n + 1) begin : word
            assign beats[n*W +: W] = read[(column_of(n)*R + row_of(n))*W +: W]
                                   & {W{~res_fault[column_of(n)]}};
        end
        for (n = 0; n < BEATS; n = n + 1) begin : wait_for
            localparam LATEST = latest_of(n);
            assign there[n] = arrived > LATEST[DIAG_BITS-1:0];
        end
    endgenerate
    assign res_valid = active[drain] & sealed[drain] & there[beat];
    assign res_tag = tag[drain*TAG_BITS +: TAG_BITS];
    assign res_fault = fault[drain*C +: C];
    assign res_data = beats[beat*LANES*W +: LANES*W];
    assign res_last = (beat == LAST_BEAT[BEAT_BITS-1:0]);
endmodule

`default_nettype wire
