// Parallel-prefix adder: sum = x + y + carry_in mod 2^W.
// KIND 0: Kogge-Stone (fewest levels, fan-out 2). 1: Han-Carlson (half the cells, one level more).
// 2: Sklansky (fewest cells at that depth, fan-out grows).
module prefix_adder #(
    parameter W    = 32,
    parameter KIND = 0
) (
    input  wire [W-1:0] x,
    input  wire [W-1:0] y,
    input  wire         carry_in,
    output wire [W-1:0] sum
);
    localparam LEVELS = $clog2(W);

    // g[l], p[l]: generate and propagate of the group that ends at each bit, after level l.
    wire [W-1:0] half = x ^ y;
    wire [(LEVELS+2)*W-1:0] g;
    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: groups that reach bit 0 need no propagate any more.
    wire [(LEVELS+2)*W-1:0] p;
    /* verilator lint_on UNUSEDSIGNAL */
    assign g[W-1:0] = (x & y) | {{(W-1){1'b0}}, half[0] & carry_in};
    assign p[W-1:0] = half;

    genvar l, i;
    generate
        for (l = 0; l < LEVELS; l = l + 1) begin : g_level
            for (i = 0; i < W; i = i + 1) begin : g_bit
                // Where this level joins bit i's group with the group that ends at bit FROM.
                localparam SPAN = 1 << l;
                localparam FROM = (KIND == 2) ? (i / SPAN) * SPAN - 1 : i - SPAN;
                localparam JOIN = (KIND == 2) ? ((i / SPAN) % 2 == 1)
                                : (FROM >= 0) && (KIND == 0 || i % 2 == 1);
                if (JOIN) begin : g_join
                    assign g[(l+1)*W+i] = g[l*W+i] | (p[l*W+i] & g[l*W+FROM]);
                    assign p[(l+1)*W+i] = p[l*W+i] & p[l*W+FROM];
                end else begin : g_pass
                    assign g[(l+1)*W+i] = g[l*W+i];
                    assign p[(l+1)*W+i] = p[l*W+i];
                end
            end
        end
        // Han-Carlson has carries of odd bits so far; one more level gives the even ones.
        for (i = 0; i < W; i = i + 1) begin : g_last
            if (KIND == 1 && i % 2 == 0 && i > 0) begin : g_join
                assign g[(LEVELS+1)*W+i] = g[LEVELS*W+i] | (p[LEVELS*W+i] & g[LEVELS*W+i-1]);
            end else begin : g_pass
                assign g[(LEVELS+1)*W+i] = g[LEVELS*W+i];
            end
            assign p[(LEVELS+1)*W+i] = p[LEVELS*W+i];
        end
    endgenerate

    assign sum = half ^ {g[(LEVELS+1)*W +: W-1], carry_in};
endmodule
