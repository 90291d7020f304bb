// Operand staging of the FHECore unit: buffers of A, B and C, their play-back step by step, and the shift of
// small moduli. A column with q = q' >> s works modulo q': b and c enter shifted left by s. A word that loses
// bits in the shift is an operand fault of its column (b, c < q never are).
`default_nettype none

module fhecore_staging #(
    parameter W = 32,
    parameter R = 16,
    parameter C = 8,
    parameter K = 16,
    parameter LANES = 32,
    parameter PTX = 1,
    parameter BEAT_BITS = 3,
    parameter SHIFT_BITS = 5
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire                    write_a,
    input  wire                    write_b,
    input  wire                    write_c,
    input  wire                    write_half,
    input  wire [BEAT_BITS-1:0]    write_beat,
    input  wire [LANES*W-1:0]      write_data,
    // a tile starts: its step 0 is in the next cycle
    input  wire                    start,
    input  wire                    start_half,
    input  wire                    start_use_c,
    // the step that the array samples at the end of this cycle
    input  wire [C*SHIFT_BITS-1:0] run_shift,
    output wire [R*W-1:0]          a_col,
    output wire [C*W-1:0]          b_row,
    output wire [C*W-1:0]          c_row,
    output wire                    k_valid,    // a_col and b_row are a step of the tile
    output wire [C-1:0]            overflow    // a word of this step lost bits
);
    wire [C*W-1:0] b_raw, c_raw;

    // Steps one-hot, half 1 above half 0: a bit that moves on each cycle and drops out at the end. Numbers
    // would have to be decoded between here and 1,000 multiplexers. No bit is set outside a tile's steps, nor
    // for a C that is not used: the words are 0 then.
    reg [2*K-1:0] pick_k;
    reg [2*R-1:0] pick_i;
    always @(posedge clk) begin
        pick_k <= {pick_k[2*K-2:K], start & start_half, pick_k[K-2:0], start & ~start_half};
        pick_i <= {pick_i[2*R-2:R], start & start_half & start_use_c,
                   pick_i[R-2:0], start & ~start_half & start_use_c};
        if (rst) begin
            pick_k <= {2*K{1'b0}};
            pick_i <= {2*R{1'b0}};
        end
    end
    assign k_valid = |pick_k;

    fhecore_operand #(.W(W), .KIND(0), .PTX(PTX), .STEPS(K), .WIDTH(R), .LANES(LANES),
                      .BEAT_BITS(BEAT_BITS)) a_buffer (
        .clk(clk), .write(write_a), .write_half(write_half), .write_beat(write_beat),
        .write_data(write_data), .pick(pick_k), .vector(a_col));
    fhecore_operand #(.W(W), .KIND(1), .PTX(PTX), .STEPS(K), .WIDTH(C), .LANES(LANES),
                      .BEAT_BITS(BEAT_BITS)) b_buffer (
        .clk(clk), .write(write_b), .write_half(write_half), .write_beat(write_beat),
        .write_data(write_data), .pick(pick_k), .vector(b_raw));
    fhecore_operand #(.W(W), .KIND(2), .PTX(PTX), .STEPS(R), .WIDTH(C), .LANES(LANES),
                      .BEAT_BITS(BEAT_BITS)) c_buffer (
        .clk(clk), .write(write_c), .write_half(write_half), .write_beat(write_beat),
        .write_data(write_data), .pick(pick_i), .vector(c_raw));

    genvar j;
    generate
        for (j = 0; j < C; j = j + 1) begin : column
            wire [SHIFT_BITS-1:0] s = run_shift[j*SHIFT_BITS +: SHIFT_BITS];
            wire [2*W-1:0]        b_wide = {{W{1'b0}}, b_raw[j*W +: W]} << s;
            wire [2*W-1:0]        c_wide = {{W{1'b0}}, c_raw[j*W +: W]} << s;
            assign b_row[j*W +: W] = b_wide[0 +: W];
            assign c_row[j*W +: W] = c_wide[0 +: W];
            assign overflow[j] = (|b_wide[W +: W]) | (|c_wide[W +: W]);
        end
    endgenerate
endmodule

`default_nettype wire
