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
    parameter STEP_BITS = 4,
    parameter SHIFT_BITS = 5
) (
    input  wire                    clk,
    input  wire                    write_a,
    input  wire                    write_b,
    input  wire                    write_c,
    input  wire                    write_half,
    input  wire [BEAT_BITS-1:0]    write_beat,
    input  wire [LANES*W-1:0]      write_data,
    // the step that the array samples at the end of this cycle
    input  wire                    run,
    input  wire                    run_half,
    input  wire                    run_use_c,
    input  wire [C*SHIFT_BITS-1:0] run_shift,
    input  wire [STEP_BITS-1:0]    step,       // < max(K, R)
    output wire [R*W-1:0]          a_col,
    output wire [C*W-1:0]          b_row,
    output wire [C*W-1:0]          c_row,
    output wire                    k_valid,    // a_col and b_row are a step of the tile
    output wire [C-1:0]            overflow    // a word of this step lost bits
);
    wire [C*W-1:0] b_raw, c_raw;
    wire           i_valid;  // c_row is a row of the tile

    // Where K and R differ, the shorter operand's last steps are past its end: they read step 0, unused.
    generate
        if (K > R) begin : more_k
            assign k_valid = run;
            assign i_valid = run & run_use_c & (step < R[STEP_BITS-1:0]);
        end else if (K < R) begin : more_r
            assign k_valid = run & (step < K[STEP_BITS-1:0]);
            assign i_valid = run & run_use_c;
        end else begin : square
            assign k_valid = run;
            assign i_valid = run & run_use_c;
        end
    endgenerate
    wire [STEP_BITS-1:0] k_step = k_valid ? step : {STEP_BITS{1'b0}};
    wire [STEP_BITS-1:0] i_step = i_valid ? step : {STEP_BITS{1'b0}};

    fhecore_operand #(.W(W), .KIND(0), .PTX(PTX), .STEPS(K), .WIDTH(R), .LANES(LANES),
                      .BEAT_BITS(BEAT_BITS), .STEP_BITS(STEP_BITS)) a_buffer (
        .clk(clk), .write(write_a), .write_half(write_half), .write_beat(write_beat),
        .write_data(write_data), .read_half(run_half), .step(k_step), .vector(a_col));
    fhecore_operand #(.W(W), .KIND(1), .PTX(PTX), .STEPS(K), .WIDTH(C), .LANES(LANES),
                      .BEAT_BITS(BEAT_BITS), .STEP_BITS(STEP_BITS)) b_buffer (
        .clk(clk), .write(write_b), .write_half(write_half), .write_beat(write_beat),
        .write_data(write_data), .read_half(run_half), .step(k_step), .vector(b_raw));
    fhecore_operand #(.W(W), .KIND(2), .PTX(PTX), .STEPS(R), .WIDTH(C), .LANES(LANES),
                      .BEAT_BITS(BEAT_BITS), .STEP_BITS(STEP_BITS)) c_buffer (
        .clk(clk), .write(write_c), .write_half(write_half), .write_beat(write_beat),
        .write_data(write_data), .read_half(run_half), .step(i_step), .vector(c_raw));

    genvar j;
    generate
        for (j = 0; j < C; j = j + 1) begin : column
            wire [SHIFT_BITS-1:0] s = run_shift[j*SHIFT_BITS +: SHIFT_BITS];
            wire [W-1:0]          c_word = c_raw[j*W +: W] & {W{i_valid}};
            wire [2*W-1:0]        b_wide = {{W{1'b0}}, b_raw[j*W +: W]} << s;
            wire [2*W-1:0]        c_wide = {{W{1'b0}}, c_word} << s;
            assign b_row[j*W +: W] = b_wide[0 +: W];
            assign c_row[j*W +: W] = c_wide[0 +: W];
            assign overflow[j] = (k_valid & (|b_wide[W +: W])) | (|c_wide[W +: W]);
        end
    endgenerate
endmodule

`default_nettype wire
