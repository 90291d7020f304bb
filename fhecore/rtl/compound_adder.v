// x + y and x + y + 1 mod 2^W from one parallel-prefix network (Sklansky): of a difference x + ~y the two are
// x - y - 1 and x - y, so that the magnitude needs no second addition.
module compound_adder #(
    parameter W = 32
) (
    input  wire [W-1:0] x,
    input  wire [W-1:0] y,
    output wire [W-1:0] sum,
    output wire [W-1:0] plus_one
);
    localparam LEVELS = $clog2(W);

    // g[l], p[l]: generate and propagate of the group that ends at each bit, after level l.
    wire [W-1:0] half = x ^ y;
    wire [(LEVELS+1)*W-1:0] g;
    wire [(LEVELS+1)*W-1:0] p;
    assign g[W-1:0] = x & y;
    assign p[W-1:0] = half;

    genvar l, i;
    generate
        for (l = 0; l < LEVELS; l = l + 1) begin : g_level
            for (i = 0; i < W; i = i + 1) begin : g_bit
                localparam SPAN = 1 << l;
                localparam FROM = (i / SPAN) * SPAN - 1;
                if ((i / SPAN) % 2 == 1) begin : g_join
                    assign g[(l+1)*W+i] = g[l*W+i] | (p[l*W+i] & g[l*W+FROM]);
                    assign p[(l+1)*W+i] = p[l*W+i] & p[l*W+FROM];
                end else begin : g_pass
                    assign g[(l+1)*W+i] = g[l*W+i];
                    assign p[(l+1)*W+i] = p[l*W+i];
                end
            end
        end
    endgenerate

    assign sum      = half ^ {g[LEVELS*W +: W-1], 1'b0};
    assign plus_one = half ^ {g[LEVELS*W +: W-1] | p[LEVELS*W +: W-1], 1'b1};
endmodule
