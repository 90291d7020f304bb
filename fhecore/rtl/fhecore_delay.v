// Delay line of CYCLES registers (0: a wire). clear empties it; tie it low where the content is data.
`default_nettype none

module fhecore_delay #(
    parameter WIDTH = 32,
    parameter CYCLES = 1
) (
    input  wire             clk,
    input  wire             clear,
    input  wire [WIDTH-1:0] d,
    output wire [WIDTH-1:0] q
);
    generate
        if (CYCLES == 0) begin : none
            assign q = d;
        end else if (CYCLES == 1) begin : one
            reg [WIDTH-1:0] line;
            always @(posedge clk) line <= clear ? {WIDTH{1'b0}} : d;
            assign q = line;
        end else begin : many
            reg [CYCLES*WIDTH-1:0] line;
            always @(posedge clk)
                line <= clear ? {CYCLES*WIDTH{1'b0}} : {line[0 +: (CYCLES-1)*WIDTH], d};
            assign q = line[(CYCLES-1)*WIDTH +: WIDTH];
        end
    endgenerate
endmodule

`default_nettype wire
