// Carry-save tree: N rows of W bits to OUT rows with the same sum mod 2^W.
//
// N - OUT carry-save adders. Each takes the three rows that are ready first ("three-greedy"; Stelling,
// Martel, Oklobdzija and Ravi, 1998, there bit by bit, here row by row); a carry is ready one unit
// after its adder's inputs, a sum two units after, as in the library's full adder. The schedule is a constant
// function of N, so the order of adders costs nothing in hardware.
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

    // Schedule up to adder `steps`. what 0..2: row at input `what` of adder `steps`; 3: polarity of that
    // adder; 4: row at output `slot`.
    function integer plan(input integer steps, input integer what, input integer slot);
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
            plan  = 0;
            for (step = 0; step <= steps && step < ADDERS; step = step + 1) begin
                made     = N + 2 * step;
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
                    if (step == steps && what == pin) plan = best;
                    latest = best_time[7:0];  // rows come in order of time
                    // Input rows come from logic that takes either polarity.
                    if (best >= N) inverted = inverted + (odd[best] ? 1 : -1);
                end
                if (step == steps && what == 3) plan = (inverted > 0) ? 1 : 0;
                ready[8*made +: 8]       = latest + 8'd1;
                ready[8*(made+1) +: 8]   = latest + 8'd2;
                odd[made]                = !(inverted > 0);
                odd[made+1]              = !(inverted > 0);
            end
            if (what == 4) begin
                seen = 0;
                for (row = 0; row < TOTAL; row = row + 1) begin
                    if (!used[row]) begin
                        if (seen == slot) plan = row;
                        seen = seen + 1;
                    end
                end
            end
        end
    endfunction

    wire [TOTAL*W-1:0] rows;
    assign rows[N*W-1:0] = in_rows;

    genvar k;
    generate
        for (k = 0; k < ADDERS; k = k + 1) begin : g_adder
            localparam X = plan(k, 0, 0);
            localparam Y = plan(k, 1, 0);
            localparam Z = plan(k, 2, 0);
            csa #(.W(W), .CELLS(CELLS), .FLIP(plan(k, 3, 0))) adder (
                .x(rows[X*W +: W]), .y(rows[Y*W +: W]), .z(rows[Z*W +: W]),
                .c(rows[(N+2*k)*W +: W]), .s(rows[(N+2*k+1)*W +: W]));
        end
        for (k = 0; k < OUT; k = k + 1) begin : g_out
            localparam ROW = plan(ADDERS, 4, k);
            assign out_rows[k*W +: W] = rows[ROW*W +: W];
        end
    endgenerate
endmodule
