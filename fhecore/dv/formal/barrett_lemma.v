// Fixed-shift Barrett: for every q in (2^(W-4), 2^W) and every p < 2^(2W) the remainder that the estimate
// leaves lies in [0, 2q), fits W+2 bits, and one correction makes it p mod q. No clock: one query.
module barrett_lemma #(
    parameter W = 6
) (
    input [2*W-1:0] p,
    input [W-1:0]   q,
    input [W+4:0]   mu
);
    localparam X = 2*W + 5;  // wide enough for every product with q below

    wire [X-1:0]    wide_q = q;
    wire [2*W+9:0]  product = {{(W+5){1'b0}}, p[2*W-1:W-5]} * {{(W+5){1'b0}}, mu};
    wire [X-1:0]    estimate = product[2*W+9:W+6];
    wire [X-1:0]    multiple = estimate * wide_q;
    wire [W+1:0]    r2 = p[W+1:0] - multiple[W+1:0];
    wire [W+1:0]    less = r2 - {2'b00, q};
    wire [W+1:0]    canonical = less[W+1] ? r2 : less;
    // mu = floor(2^(2W+1) / q): what is left over is below q.
    wire [X-1:0]    left = ({{(X-1){1'b0}}, 1'b1} << (2*W+1)) - mu * wide_q;

    always @* begin
        assume (q > (1 << (W-4)));
        assume (left < wide_q);
        // multiple + r2 = p without wrapping, r2 < 2q: then canonical = p mod q.
        assert (multiple + r2 == p);
        assert (r2 < 2 * wide_q);
        assert (canonical < q);
    end
endmodule
