// A carry-save tree keeps the sum of its rows mod 2^W, in either form of its adders.
module csatree_sum #(
    parameter W = 3,
    parameter N = 5,
    parameter OUT = 2,
    parameter CELLS = 1
) (
    input [N*W-1:0] rows
);
    wire [OUT*W-1:0] out;
    csatree #(.N(N), .W(W), .OUT(OUT), .CELLS(CELLS)) dut (.in_rows(rows), .out_rows(out));

    reg [W-1:0] before, after;
    integer n;
    always @* begin
        before = 0;
        for (n = 0; n < N; n = n + 1) before = before + rows[n*W +: W];
        after = 0;
        for (n = 0; n < OUT; n = n + 1) after = after + out[n*W +: W];
        assert (before == after);
    end
endmodule
