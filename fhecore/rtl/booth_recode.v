// Radix-4 Booth digits of an unsigned word: y = sum d[i] 4^i, d[i] in {-2..2}, i = 0 .. B/2.
// |d| = 1: one; |d| = 2: two; neg is the sign and may be set with d = 0. The top digit is never negative.
module booth_recode #(
    parameter B = 32,
    parameter D = B / 2 + 1
) (
    input  wire [B-1:0] y,
    output wire [D-1:0] one,
    output wire [D-1:0] two,
    output wire [D-1:0] neg
);
    wire [2*D:0] padded = {{(2*D-B){1'b0}}, y, 1'b0};
    genvar i;
    generate
        for (i = 0; i < D; i = i + 1) begin : g_digit
            wire high = padded[2*i+2];
            wire mid  = padded[2*i+1];
            wire low  = padded[2*i];
            assign one[i] = mid ^ low;
            assign two[i] = (high & ~mid & ~low) | (~high & mid & low);
            assign neg[i] = high;
        end
    endgenerate
endmodule
