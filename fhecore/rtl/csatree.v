// Carry-save tree: N rows of W bits to OUT rows with the same sum mod 2^W.
//
// N - OUT carry-save adders. Each takes the three rows that are ready first ("three-greedy", [SMOR98], there
// bit by bit, here row by row); a carry is ready one unit after its adder's inputs, a sum two units after, as
// in the library's full adder. The schedule is a constant, so the order of adders costs nothing in hardware.
// Rows are packed, row 0 in the low W bits.
module csatree #(
    parameter N     = 18,  // 2..40
    parameter W     = 64,
    parameter OUT   = 2,   // 2..N
    parameter CELLS = 0
) (
    input  wire [N*W-1:0]   in_rows,
    output wire [OUT*W-1:0] out_rows
);
    localparam ADDERS = N - OUT;
    localparam TOTAL  = N + 2 * ADDERS;  // rows ever made: inputs, then carry and sum of each adder

    // Schedule, 8 bits a field: of every adder the rows at its three inputs and its polarity, then the rows at
    // the outputs.
    localparam FIELDS = 4 * ADDERS + OUT;
    function [8*FIELDS-1:0] plan(input integer inputs);
        integer step, pin, row, best, made, seen;
        reg [8*TOTAL-1:0] ready;   // time of each row
        reg [TOTAL-1:0]   used;
        reg [TOTAL-1:0]   odd;     // row has passed an odd number of inverting adders
        integer inverted, best_time;
        reg [7:0] latest;
        begin
            ready = 0;
            used  = 0;
            odd   = 0;
            for (step = 0; step < ADDERS; step = step + 1) begin
                made     = inputs + 2 * step;
                latest   = 8'd0;
                inverted = 0;
                for (pin = 0; pin < 3; pin = pin + 1) begin
                    best = -1;
                    best_time = 256;
                    for (row = 0; row < made; row = row + 1) begin
                        if (!used[row] && {24'd0, ready[8*row +: 8]} < best_time) begin
                            best = row;
                            best_time = {24'd0, ready[8*row +: 8]};
                        end
                    end
                    used[best] = 1'b1;
                    plan[8*(4*step+pin) +: 8] = best[7:0];
                    latest = best_time[7:0];  // rows come in order of time
                    // Input rows come from logic that takes either polarity.
                    if (best >= inputs) inverted = inverted + (odd[best] ? 1 : -1);
                end
                plan[8*(4*step+3) +: 8] = (inverted > 0) ? 8'd1 : 8'd0;
                ready[8*made +: 8]       = latest + 8'd1;
                ready[8*(made+1) +: 8]   = latest + 8'd2;
                odd[made]                = !(inverted > 0);
                odd[made+1]              = !(inverted > 0);
            end
            seen = 0;
            for (row = 0; row < TOTAL; row = row + 1) begin
                if (!used[row]) begin
                    plan[8*(4*ADDERS+seen) +: 8] = row[7:0];
                    seen = seen + 1;
                end
            end
        end
    endfunction
    localparam [8*FIELDS-1:0] PLAN = plan(N);

    wire [TOTAL*W-1:0] rows;
    assign rows[N*W-1:0] = in_rows;

    genvar k;
    generate
        for (k = 0; k < ADDERS; k = k + 1) begin : g_adder
            localparam X = PLAN[8*(4*k) +: 8];
            localparam Y = PLAN[8*(4*k+1) +: 8];
            localparam Z = PLAN[8*(4*k+2) +: 8];
            csa #(.W(W), .CELLS(CELLS), .FLIP(PLAN[8*(4*k+3)])) adder (
                .x(rows[X*W +: W]), .y(rows[Y*W +: W]), .z(rows[Z*W +: W]),
                .c(rows[(N+2*k)*W +: W]), .s(rows[(N+2*k+1)*W +: W]));
        end
        for (k = 0; k < OUT; k = k + 1) begin : g_out
            localparam ROW = PLAN[8*(4*ADDERS+k) +: 8];
            assign out_rows[k*W +: W] = rows[ROW*W +: W];
        end
    endgenerate
endmodule
