// The array of the FHECore unit with one reduction a column: lazy_pe in the places of modmul_pe_cs, lazy_reduce at
// the end of each column, where one element a cycle arrives at most. Ports, values and duties are those of
// fhecore_array; an element is five edges later, 11 register levels for 6: 49 for the last of 16 x 8 with K = 16.
// The levels: 2 of an element, 1 of the column's bus, 4 + G of its reduction. The interval is the same. A tile has 2^G
// steps at most: with G = 5, 32 of them, an element is one edge later still.
`include "fhecore_config.vh"
`default_nettype none

module lazy_array #(
    parameter W = `FHECORE_PAPER_W,  // bits of a word
    parameter R = `FHECORE_PAPER_R,  // rows
    parameter C = `FHECORE_PAPER_C,  // columns
    parameter G = 4,     // 2^G steps a tile, or less
    parameter CELLS = 1  // of csatree: 0 is the same function, far faster to simulate
) (
    input  wire                 clk,
    input  wire                 rst,       // synchronous; clears control only
    input  wire [R*W-1:0]       a_col,     // column k of A, row 0 in the low word
    input  wire [C*W-1:0]       b_row,     // row k of B, column 0 in the low word
    input  wire [C*W-1:0]       c_row,     // row i of C, see above
    input  wire                 valid_in,
    input  wire                 first_in,
    input  wire                 last_in,
    input  wire                 bank_in,   // set of column constants that this step uses
    input  wire [C*W-1:0]       q0,        // bank 0: moduli, each in (2^(W-4), 2^W)
    input  wire [C*W-1:0]       q1,
    input  wire [C*(W+5)-1:0]   mu0,       // bank 0: floor(2^(2W+1) / q)
    input  wire [C*(W+5)-1:0]   mu1,
    output wire [C*W-1:0]       d_bus,
    output wire [C-1:0]         d_valid
);
    localparam CTL = 4;  // valid, first, last, bank
    localparam A = 2 * W + G;
    localparam S = 2 * A + 1;  // a sum in two rows, and its bank

    // One input register. Delay line i of A then has i registers, line j of B and of C has j.
    reg [R*W-1:0] a_reg;
    reg [C*W-1:0] b_reg;
    reg [C*W-1:0] c_reg;
    reg [CTL-1:0] ctl_reg;
    always @(posedge clk) begin
        a_reg <= a_col;
        b_reg <= b_row;
        c_reg <= c_row;
        ctl_reg <= {bank_in, last_in, first_in, valid_in & ~rst};
    end

    wire [R*W-1:0]   a_edge;    // into column 0
    wire [R*CTL-1:0] ctl_edge;
    wire [C*W-1:0]   b_edge;    // into row 0
    wire [C*W-1:0]   c_edge;    // to every row of the column: an element takes it with its first step

    genvar i, j;
    generate
        for (i = 0; i < R; i = i + 1) begin : row_skew
            fhecore_delay #(.WIDTH(W), .CYCLES(i)) a_line (
                .clk(clk), .clear(1'b0), .d(a_reg[i*W +: W]), .q(a_edge[i*W +: W]));
            fhecore_delay #(.WIDTH(CTL), .CYCLES(i)) ctl_line (
                .clk(clk), .clear(rst), .d(ctl_reg), .q(ctl_edge[i*CTL +: CTL]));
        end
        for (j = 0; j < C; j = j + 1) begin : column_skew
            fhecore_delay #(.WIDTH(W), .CYCLES(j)) b_line (
                .clk(clk), .clear(1'b0), .d(b_reg[j*W +: W]), .q(b_edge[j*W +: W]));
            fhecore_delay #(.WIDTH(W), .CYCLES(j)) c_line (
                .clk(clk), .clear(1'b0), .d(c_reg[j*W +: W]), .q(c_edge[j*W +: W]));
        end
    endgenerate

    // Nets between elements. a and control: C+1 columns of R words; b: R+1 rows of C words.
    wire [R*(C+1)*W-1:0]   a_net;
    wire [R*(C+1)*CTL-1:0] ctl_net;
    wire [(R+1)*C*W-1:0]   b_net;
    wire [R*C*S-1:0]       acc;    // masked by done, with the bank
    wire [R*C-1:0]         done;

    assign b_net[0 +: C*W] = b_edge;
    generate
        for (i = 0; i < R; i = i + 1) begin : row
            assign a_net[i*(C+1)*W +: W] = a_edge[i*W +: W];
            assign ctl_net[i*(C+1)*CTL +: CTL] = ctl_edge[i*CTL +: CTL];
            for (j = 0; j < C; j = j + 1) begin : column
                localparam HERE = i*(C+1) + j;  // place on a_net and ctl_net; HERE + 1 is the neighbour's
                localparam AT = i*C + j;
                wire [2*A-1:0] rows;
                wire           bank;
                lazy_pe #(.W(W), .G(G), .CELLS(CELLS)) pe (
                    .clk(clk), .rst(rst),
                    .a_in(a_net[HERE*W +: W]), .b_in(b_net[AT*W +: W]), .c_in(c_edge[j*W +: W]),
                    .valid_in(ctl_net[HERE*CTL]), .first_in(ctl_net[HERE*CTL+1]),
                    .last_in(ctl_net[HERE*CTL+2]), .bank_in(ctl_net[HERE*CTL+3]),
                    .a_out(a_net[(HERE+1)*W +: W]), .b_out(b_net[(AT+C)*W +: W]),
                    .valid_out(ctl_net[(HERE+1)*CTL]), .first_out(ctl_net[(HERE+1)*CTL+1]),
                    .last_out(ctl_net[(HERE+1)*CTL+2]), .bank_out(ctl_net[(HERE+1)*CTL+3]),
                    .acc(rows), .done(done[AT]), .bank(bank));
                assign acc[AT*S +: S] = {bank, rows} & {S{done[AT]}};
            end
        end
    endgenerate

    // Column buses, each with its reduction: one row at most is done in a column in a cycle.
    generate
        for (j = 0; j < C; j = j + 1) begin : column_bus
            wire [R*S-1:0] words;
            wire [R-1:0]   dones;
            wire [S-1:0]   next;
            reg  [S-1:0]   rows;
            reg            any;
            wire [W-1:0]   word;
            for (i = 0; i < R; i = i + 1) begin : gather
                assign words[i*S +: S] = acc[(i*C+j)*S +: S];
                assign dones[i] = done[i*C+j];
            end
            fhecore_or #(.WIDTH(S), .N(R)) tree (.words(words), .any(next));
            always @(posedge clk) {any, rows} <= {~rst & |dones, next};
            lazy_reduce #(.W(W), .G(G), .CELLS(CELLS)) reduce (
                .clk(clk), .rst(rst), .x(rows[A-1:0]), .y(rows[2*A-1:A]), .valid_in(any), .bank_in(rows[S-1]),
                .q0(q0[j*W +: W]), .q1(q1[j*W +: W]),
                .mu0(mu0[j*(W+5) +: W+5]), .mu1(mu1[j*(W+5) +: W+5]),
                .d(word), .valid(d_valid[j]));
            assign d_bus[j*W +: W] = word & {W{d_valid[j]}};
        end
    endgenerate
endmodule

`default_nettype wire
