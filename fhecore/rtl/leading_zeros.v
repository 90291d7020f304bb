// Leading zeros of a word of 2^N bits, as a tree of halves: N levels. With no bit set, any is 0 and count is
// 2^N - 1.
module leading_zeros #(
    parameter N = 1
) (
    input  wire [(1<<N)-1:0] x,
    output wire [N-1:0]      count,
    output wire              any
);
    generate
        if (N == 1) begin : g_pair
            assign count = ~x[1];
            assign any   = x[1] | x[0];
        end else begin : g_halves
            localparam HALF = 1 << (N - 1);
            wire [N-2:0] high_count, low_count;
            wire         high_any, low_any;
            leading_zeros #(.N(N-1)) high (.x(x[2*HALF-1:HALF]), .count(high_count), .any(high_any));
            leading_zeros #(.N(N-1)) low  (.x(x[HALF-1:0]),      .count(low_count),  .any(low_any));
            assign any   = high_any | low_any;
            assign count = {~high_any, high_any ? high_count : low_count};
        end
    endgenerate
endmodule
