// Stand-in for csatree in the proof of the 8-bit product, where the real one gives no verdict in minutes: the
// same sum in row 0, nothing in the others. csatree_sum shows that the real tree keeps the sum.
module csatree #(
    parameter N     = 18,
    parameter W     = 64,
    parameter OUT   = 2,
    parameter CELLS = 0
) (
    input  wire [N*W-1:0]   in_rows,
    output wire [OUT*W-1:0] out_rows
);
    reg [W-1:0] sum;
    integer n;
    always @* begin
        sum = 0;
        for (n = 0; n < N; n = n + 1) sum = sum + in_rows[n*W +: W];
    end
    assign out_rows = sum;
endmodule
