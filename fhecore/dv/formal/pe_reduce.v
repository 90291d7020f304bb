// Levels 3 to 5: for any product register p (cut free) the remainder rows sum, mod 2^(W+2), to r2 in [0, 2q)
// with r2 = p mod q after at most one subtraction; q of the bank that travelled with the step.
module pe_reduce
`include "pe_ports.vh"
`include "pe_window.vh"
`include "pe_remainder.vh"

    wire [2*W-1:0] p2;
    reg  [2*W-1:0] p3, p4, p5;
    always @(posedge clk) begin
        p3 <= p2;
        p4 <= p3;
        p5 <= p4;
    end
    localparam X = 2*W + 6;
    wire [X-1:0] wide_q0 = q0;
    wire [X-1:0] wide_q1 = q1;
    wire [X-1:0] left0 = UNIT - mu0 * wide_q0;
    wire [X-1:0] left1 = UNIT - mu1 * wide_q1;
    wire [X-1:0] q5 = bank[5] ? q1 : q0;

    always @* begin
        assume (q0 > (1 << (W-4)) && q1 > (1 << (W-4)));
        assume (left0 < wide_q0 && left1 < wide_q1);  // mu = floor(2^(2W+1) / q)
        if (age == 5) begin
            assert (r2 < 2 * q5);
            assert ((r2 < q5 ? r2 : r2 - q5) == p5 % q5);
        end
    end
endmodule
