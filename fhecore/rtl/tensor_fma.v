// Fused multiply-add in floating point: d = a*b + c with one rounding, to nearest, ties to even, as IEEE 754
// defines it, subnormal numbers, zeros' signs and infinities included. NaN is one pattern: positive, quiet,
// payload 0. a and b have E exponent bits and M fraction bits, c and d EA and MA; a format's bias is
// 2^(bits - 1) - 1. Tested for binary64; binary32; TF32 and binary16 with sums in binary32.
//
//   level 1  significands' product in four rows (Booth radix 4); exponents
//   level 2  product; c moved to its place beside it
//   level 3  sum and sum + 1, of which one is the magnitude
//   level 4  leading zeros, or as many as the least exponent leaves
//   level 5  normalised; what is below the last place in two bits
//   level 6  rounded, packed
// A step enters in every cycle, sampled at edge n it is d after edge n + 5. With hold d is c, bit by bit (a NaN
// becomes the one pattern).
//
// The frame of the sum: P places of c, two of zeros, the product's PP, X more for what of c may count when the
// product has leading zeros, and one that stands for all below. Left of its own places c would lie in that frame
// only when the product is less than a quarter of its last place: then the frame moves with c, and the product
// stays where it is, as only its sign and whether it is 0 matter.
module tensor_fma #(
    parameter E  = 11,
    parameter M  = 52,
    parameter EA = 11,  // E or more
    parameter MA = 52,  // M or more
    parameter CELLS = 1 // adders: 0 is the same function, far faster to simulate
) (
    input  wire           clk,
    input  wire [E+M:0]   a,
    input  wire [E+M:0]   b,
    input  wire [EA+MA:0] c,
    input  wire           hold,
    output reg  [EA+MA:0] d
);
    localparam PI = M + 1;             // significands
    localparam P  = MA + 1;
    localparam PP = 2 * PI;
    localparam X  = (EA > E) ? P + 1   // a product of two subnormal numbers has one bit, and may be far above c
                             : P + 2 - PI;
    localparam FW = P + 2 + PP + X;    // the frame, without its lowest place
    localparam N  = $clog2(FW + 2);    // bits of a shift in it
    localparam EW = EA + 3;            // signed exponents, in c's bias
    localparam ROWS = 4;
    localparam D  = PI / 2 + 1;        // Booth digits
    // ea + eb -> exponent of the frame's highest place, PP and P + 2 places to the left of the product's lowest
    localparam TOP = P + 3 + (1 << (EA - 1)) - 1 - 2 * ((1 << (E - 1)) - 1);
    localparam [EW-1:0] TO_TOP = TOP[EW-1:0];
    localparam [EW-1:0] WIDTH  = FW[EW-1:0];

    // Level 1.
    wire a_normal = |a[E+M-1:M];
    wire b_normal = |b[E+M-1:M];
    wire c_normal = |c[EA+MA-1:MA];
    wire [PI-1:0] a_significand = {a_normal, a[M-1:0]};
    wire [PI-1:0] b_significand = {b_normal, b[M-1:0]};
    wire a_zero = ~|a[E+M-1:0], b_zero = ~|b[E+M-1:0];
    wire a_top = &a[E+M-1:M], b_top = &b[E+M-1:M], c_top = &c[EA+MA-1:MA];  // infinite or NaN
    wire a_nan = a_top & |a[M-1:0], b_nan = b_top & |b[M-1:0], c_nan = c_top & |c[MA-1:0];
    wire product_inf  = ~hold & (a_top | b_top);
    wire product_sign = hold ? c[EA+MA] : a[E+M] ^ b[E+M];
    // An exponent field of 0 counts as 1.
    wire [EW-1:0] a_exponent = {{(EW-E){1'b0}}, a[E+M-1:M+1], a[M] | ~a_normal};
    wire [EW-1:0] b_exponent = {{(EW-E){1'b0}}, b[E+M-1:M+1], b[M] | ~b_normal};
    wire [EW-1:0] c_exponent = {{(EW-EA){1'b0}}, c[EA+MA-1:MA+1], c[MA] | ~c_normal};
    wire [EW-1:0] top_next   = a_exponent + b_exponent + TO_TOP;

    wire [D-1:0]       one, two, neg;
    wire [D*PP-1:0]    product_rows;
    wire [ROWS*PP-1:0] product_sum;
    booth_recode #(.B(PI)) recode (.y(b_significand), .one(one), .two(two), .neg(neg));
    booth_rows #(.N(PI), .D(D), .TO(PP)) product (
        .x(a_significand), .one(one), .two(two), .neg(neg), .rows(product_rows));
    csatree #(.N(D), .W(PP), .OUT(ROWS), .CELLS(CELLS)) tree (.in_rows(product_rows), .out_rows(product_sum));

    reg [ROWS*PP-1:0] sum1;
    reg [P-1:0]       c1;
    reg [EW-1:0]      top1, c_exponent1, shift1;
    reg               sign1, c_sign1, none1, hold1, nan1, inf1, inf_sign1;
    always @(posedge clk) begin
        sum1        <= product_sum;
        c1          <= {c_normal, c[MA-1:0]};
        top1        <= top_next;
        c_exponent1 <= c_exponent;
        shift1      <= top_next - c_exponent;
        sign1       <= product_sign;
        c_sign1     <= c[EA+MA];
        none1       <= hold | a_zero | b_zero;
        hold1       <= hold;
        nan1        <= c_nan | (~hold & (a_nan | b_nan | (a_top & b_zero) | (b_top & a_zero)))
                     | (product_inf & c_top & (product_sign ^ c[EA+MA]));
        inf1        <= product_inf | c_top;
        inf_sign1   <= product_inf ? product_sign : c[EA+MA];
    end

    // Level 2.
    wire [2*PP-1:0] rows2;
    wire [PP-1:0]   p_next;
    csatree #(.N(ROWS), .W(PP), .CELLS(CELLS)) rest (.in_rows(sum1), .out_rows(rows2));
    generate
        if (CELLS != 0) begin : g_resolve
            prefix_adder #(.W(PP), .KIND(2)) resolve (
                .x(rows2[PP-1:0]), .y(rows2[2*PP-1:PP]), .carry_in(1'b0), .sum(p_next));
        end else begin : g_resolve_fast
            assign p_next = rows2[PP-1:0] + rows2[2*PP-1:PP];
        end
    endgenerate
    wire stay = none1 | shift1[EW-1];
    wire [N-1:0] places = stay ? {N{1'b0}} : (shift1 > WIDTH) ? WIDTH[N-1:0] : shift1[N-1:0];
    wire [FW+P-1:0] moved = {c1, {FW{1'b0}}} >> places;
    wire sub_next = sign1 ^ c_sign1;
    reg [PP-1:0] p2;
    reg [FW+1:0] c2;  // complement when subtracted
    reg [EW-1:0] top2;
    reg          sub2, sign2, c_sign2, nan2, inf2, inf_sign2;
    always @(posedge clk) begin
        p2   <= p_next & {PP{~hold1}};
        c2   <= {1'b0, moved[FW+P-1:P], |moved[P-1:0]} ^ {(FW+2){sub_next}};
        top2 <= stay ? c_exponent1 : top1;
        {sub2, sign2, c_sign2, nan2, inf2, inf_sign2} <= {sub_next, sign1, c_sign1, nan1, inf1, inf_sign1};
    end

    // Level 3: product + c, or product - c, or c - product = ~(product - c - 1).
    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: of sum the magnitude only, its sign is that of plus_one.
    wire [FW+1:0] sum, plus_one;
    /* verilator lint_on UNUSEDSIGNAL */
    wire [FW+1:0] placed = {{(P+3){1'b0}}, p2, {(X+1){1'b0}}};
    generate
        if (CELLS != 0) begin : g_add
            compound_adder #(.W(FW+2)) add (.x(placed), .y(c2), .sum(sum), .plus_one(plus_one));
        end else begin : g_add_fast
            assign sum      = placed + c2;
            assign plus_one = sum + {{(FW+1){1'b0}}, 1'b1};
        end
    endgenerate
    wire less = sub2 & plus_one[FW+1];
    reg [FW:0]   magnitude3;
    reg [EW-1:0] top3;
    reg          sub3, sign3, nan3, inf3;
    always @(posedge clk) begin
        magnitude3 <= less ? ~sum[FW:0] : sub2 ? plus_one[FW:0] : sum[FW:0];
        top3       <= top2;
        sub3       <= sub2;
        sign3      <= inf2 ? inf_sign2 : less ? c_sign2 : sign2;
        {nan3, inf3} <= {nan2, inf2};
    end

    // Level 4: the exponent stays 1 or more. A sum that vanishes is +0, that of zeros of one sign keeps it.
    wire [N-1:0] zeros;
    wire         any;
    leading_zeros #(.N(N)) leading (
        .x({magnitude3, {((1<<N)-FW-1){1'b0}}}), .count(zeros), .any(any));
    wire [EW-1:0] spare = top3 - {{(EW-1){1'b0}}, 1'b1};
    wire enough = |spare[EW-1:N] | (zeros <= spare[N-1:0]);
    reg [FW:0]   magnitude4;
    reg [N-1:0]  shift4;
    reg [EW-1:0] top4;
    reg          sign4, nan4, inf4;
    always @(posedge clk) begin
        magnitude4 <= magnitude3;
        shift4     <= enough ? zeros : spare[N-1:0];
        top4       <= top3;
        sign4      <= sign3 & (inf3 | any | ~sub3);
        {nan4, inf4} <= {nan3, inf3};
    end

    // Level 5.
    wire [FW:0] normal = magnitude4 << shift4;
    wire guard  = normal[FW-P];
    wire sticky = |normal[FW-P-1:0];
    reg [MA-1:0] fraction5;
    reg [EW-1:0] exponent5;
    reg          up5, sign5, nan5, inf5;
    always @(posedge clk) begin
        fraction5 <= normal[FW-1:FW-MA];
        exponent5 <= {EW{normal[FW]}} & (top4 - {{(EW-N){1'b0}}, shift4});
        up5       <= guard & (sticky | normal[FW-MA]);
        {sign5, nan5, inf5} <= {sign4, nan4, inf4};
    end

    // Level 6: a carry out of the fraction is the next exponent, up to infinity.
    wire [EA+MA-1:0] rounded = {exponent5[EA-1:0], fraction5} + {{(EA+MA-1){1'b0}}, up5};
    wire over = |exponent5[EW-1:EA] | (&exponent5[EA-1:0]);
    always @(posedge clk)
        d <= nan5         ? {1'b0, {EA{1'b1}}, 1'b1, {(MA-1){1'b0}}}
           : inf5 | over  ? {sign5, {EA{1'b1}}, {MA{1'b0}}}
                          : {sign5, rounded};
endmodule
