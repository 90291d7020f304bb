// The prefix adder adds, at every width that the element uses it in.
module adder_sum #(
    parameter W = 34,
    parameter KIND = 0
) (
    input [W-1:0] x, y,
    input         carry_in
);
    wire [W-1:0] sum;
    prefix_adder #(.W(W), .KIND(KIND)) dut (.x(x), .y(y), .carry_in(carry_in), .sum(sum));
    wire [W-1:0] expected = x + y + {{(W-1){1'b0}}, carry_in};
    always @* assert (sum == expected);
endmodule
