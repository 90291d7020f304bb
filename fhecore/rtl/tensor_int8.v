// d = a*b + c mod 2^32 of signed bytes, at the same levels as tensor_fma: sampled at edge n it is d after edge
// n + 5. With hold d is c.
module tensor_int8 (
    input  wire        clk,
    input  wire [7:0]  a,
    input  wire [7:0]  b,
    input  wire [31:0] c,
    input  wire        hold,
    output reg  [31:0] d
);
    reg signed [15:0] p1;
    reg [31:0] c1, d2, d3, d4, d5;
    always @(posedge clk) begin
        p1 <= hold ? 16'sd0 : $signed(a) * $signed(b);
        c1 <= c;
        d2 <= {{16{p1[15]}}, p1} + c1;
        d3 <= d2;
        d4 <= d3;
        d5 <= d4;
        d  <= d5;
    end
endmodule
