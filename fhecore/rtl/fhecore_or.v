// OR of N words as a tree: node i is the OR of nodes 2i and 2i + 1, nodes N to 2N - 1 are the words. The depth
// is the logarithm of N in every tool.
`default_nettype none

module fhecore_or #(
    parameter WIDTH = 32,
    parameter N = 16
) (
    input  wire [N*WIDTH-1:0] words,
    output wire [WIDTH-1:0]   any
);
    genvar i;
    generate
        for (i = 1; i < 2*N; i = i + 1) begin : node
            wire [WIDTH-1:0] value;
            if (i >= N) begin : leaf
                assign value = words[(i-N)*WIDTH +: WIDTH];
            end else begin : branch
                assign value = node[2*i].value | node[2*i+1].value;
            end
        end
    endgenerate
    assign any = node[1].value;
endmodule

`default_nettype wire
