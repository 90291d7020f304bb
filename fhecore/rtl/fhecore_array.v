// Systolic array of the FHECore unit: R x C elements, output stationary.
//
//   D[i][j] = (sum over steps k of A[i][k] * B[k][j], plus C[i][j]) mod q_j,  canonical in [0, q_j)
//
// a moves right with its control bits, b moves down, one element a cycle; every element keeps its own sum.
// Inputs are NOT skewed: step k of a tile is a_col = A[.][k], b_row = B[k][.] with valid_in in one cycle; the
// skew registers are in here, behind one input register. first_in and last_in mark the steps 0 and K-1.
// Steps may be apart (valid_in = 0 between them). c_row is C[i][.] in cycle i counted from the one of step 0,
// whether or not later steps are late; it is read only there, for R cycles.
//
// Element (i, j) of a tile stands on d_bus word j, with d_valid[j], for one cycle: row 0 first, a row a
// cycle, column j one cycle after column j-1. The bus is the AND-OR of the accumulators, not registered.
// Counted from the edge that samples the last step, the edge that can sample element (i, j) is
// i + j + 7 later (6 register levels of the element, 1 of the array's input); without gaps that is K + i + j + 6
// after the edge of step 0: 44 for the last element of 16 x 8 with K = 16.
//
// Duties of the user: last steps of two tiles are R or more cycles apart (else two rows of a column meet on
// d_bus), so are first steps; constants of a bank (q', mu of every column) stand still from one cycle after
// the edge that samples step 0 until the last element of the last tile of that bank has its result.
`include "fhecore_config.vh"
`default_nettype none

module fhecore_array #(
    parameter W = `FHECORE_PAPER_W,  // bits of a word
    parameter R = `FHECORE_PAPER_R,  // rows
    parameter C = `FHECORE_PAPER_C,  // columns
    parameter CARRY_SAVE = 0,  // 1: elements of modmul_pe_cs (the one that is synthesised), 0: modmul_pe,
                               // 2: modmul_pe_seq, whose steps stand on a grid of three cycles
    parameter CELLS = 1        // of the latter two: 0 is the same function, far faster to simulate
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
    wire [R*C*W-1:0]       acc;    // masked by done
    wire [R*C-1:0]         done;

    // Ports of element (i, j), whichever form it has.
`define FHECORE_ELEMENT_PORTS ( \
    .clk(clk), .rst(rst), \
    .a_in(a_net[HERE*W +: W]), .b_in(b_net[AT*W +: W]), .c_in(c_edge[j*W +: W]), \
    .valid_in(ctl_net[HERE*CTL]), .first_in(ctl_net[HERE*CTL+1]), \
    .last_in(ctl_net[HERE*CTL+2]), .bank_in(ctl_net[HERE*CTL+3]), \
    .q0(q0[j*W +: W]), .q1(q1[j*W +: W]), \
    .mu0(mu0[j*(W+5) +: W+5]), .mu1(mu1[j*(W+5) +: W+5]), \
    .a_out(a_net[(HERE+1)*W +: W]), .b_out(b_net[(AT+C)*W +: W]), \
    .valid_out(ctl_net[(HERE+1)*CTL]), .first_out(ctl_net[(HERE+1)*CTL+1]), \
    .last_out(ctl_net[(HERE+1)*CTL+2]), .bank_out(ctl_net[(HERE+1)*CTL+3]), \
    .acc(acc_raw), .done(done[AT]))

    assign b_net[0 +: C*W] = b_edge;
    generate
        for (i = 0; i < R; i = i + 1) begin : row
            assign a_net[i*(C+1)*W +: W] = a_edge[i*W +: W];
            assign ctl_net[i*(C+1)*CTL +: CTL] = ctl_edge[i*CTL +: CTL];
            for (j = 0; j < C; j = j + 1) begin : column
                localparam HERE = i*(C+1) + j;  // place on a_net and ctl_net; HERE + 1 is the neighbour's
                localparam AT = i*C + j;
                wire [W-1:0] acc_raw;
                if (CARRY_SAVE == 2) begin : seq
                    modmul_pe_seq #(.W(W), .CELLS(CELLS)) pe `FHECORE_ELEMENT_PORTS;
                end else if (CARRY_SAVE != 0) begin : cs
                    modmul_pe_cs #(.W(W), .CELLS(CELLS)) pe `FHECORE_ELEMENT_PORTS;
                end else begin : beh
                    modmul_pe #(.W(W)) pe `FHECORE_ELEMENT_PORTS;
                end
                assign acc[AT*W +: W] = acc_raw & {W{done[AT]}};
            end
        end
    endgenerate
`undef FHECORE_ELEMENT_PORTS

    // Column buses: one row at most is done in a column in a cycle.
    generate
        for (j = 0; j < C; j = j + 1) begin : column_bus
            wire [R*W-1:0] words;
            wire [R-1:0]   dones;
            for (i = 0; i < R; i = i + 1) begin : gather
                assign words[i*W +: W] = acc[(i*C+j)*W +: W];
                assign dones[i] = done[i*C+j];
            end
            fhecore_or #(.WIDTH(W), .N(R)) tree (.words(words), .any(d_bus[j*W +: W]));
            assign d_valid[j] = |dones;
        end
    endgenerate
endmodule

`default_nettype wire
