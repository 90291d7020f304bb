// FHECore unit: D = A B + C modulo q_j in every column j, between a warp's registers and back.
//
// Command channel -> operand beats -> two operand sets -> systolic array -> result buffers -> result beats.
// Ports, order of the beats, timing and faults: fhecore/doc/microarchitecture.md. Instructions: doc/isa.md.
`include "fhecore_config.vh"
`default_nettype none

module fhecore #(
    parameter W = `FHECORE_PAPER_W,          // bits of a word, 16..32
    parameter R = `FHECORE_PAPER_R,          // rows, 2..64
    parameter C = `FHECORE_PAPER_C,          // columns, 2..64
    parameter K = `FHECORE_PAPER_K,          // steps of a tile, 2..64
    parameter SLOTS = `FHECORE_PAPER_SLOTS,  // warps: sets of column constants, a power of two, 2..64
    parameter LANES = `FHECORE_PAPER_LANES,  // words of a beat, 2..32; divides R*K, K*C and R*C
    parameter TAG_BITS = 8,
    parameter CARRY_SAVE = 0,                // 1: modmul_pe_cs elements, 0: modmul_pe
    parameter CELLS = 1,                     // of modmul_pe_cs
    // Derived, not for setting: the least edges between two tiles, and the result buffers that keep up with
    // them, a tile having its own from its start until its last beat has left.
    parameter SLOT_BITS = $clog2(SLOTS),
    parameter PERIOD = (K > R) ? K : R,  // K steps; R rows of C, and of results in a column
    parameter AB_BEATS = (R * K + K * C) / LANES,
    parameter LOOKUP = 3,                // of constants, after a start; 4 where slot or bank change
    parameter FEED = (AB_BEATS > PERIOD) ? AB_BEATS : PERIOD,
    parameter INTERVAL = (FEED > LOOKUP) ? FEED : LOOKUP,
    parameter BUFS = (K + R + C - 2 + `FHECORE_LEVELS + 3 + INTERVAL - 1) / INTERVAL
) (
    input  wire                 clk,
    input  wire                 rst,        // synchronous; tiles in flight are lost, all slots invalid
    // commands, in order
    input  wire                 cmd_valid,
    output wire                 cmd_ready,
    input  wire                 cmd_setc,   // 1: FHEC.SETC, 0: FHEC
    input  wire [SLOT_BITS-1:0] cmd_slot,   // warp
    input  wire                 cmd_use_c,  // FHEC: 0 means C = 0 and no beats of C
    input  wire [TAG_BITS-1:0]  cmd_tag,    // comes back with the result
    // operand beats of the accepted commands, in order
    input  wire                 rf_valid,
    output wire                 rf_ready,
    input  wire [LANES*W-1:0]   rf_data,
    // result beats, in order of the commands
    output wire                 res_valid,
    input  wire                 res_ready,
    output wire [TAG_BITS-1:0]  res_tag,
    output wire [C-1:0]         res_fault,  // columns without a result (their words are 0)
    output wire [LANES*W-1:0]   res_data,
    output wire                 res_last
);
    localparam PTX = (R == 16 && C == 8 && K == 16 && LANES == 32) ? 1 : 0;
    localparam A_BEATS = R * K / LANES;
    localparam B_BEATS = K * C / LANES;
    localparam C_BEATS = R * C / LANES;
    localparam SET_BEATS = (3 * C + LANES - 1) / LANES;
    localparam MAX_AB = (A_BEATS > B_BEATS) ? A_BEATS : B_BEATS;
    localparam MAX_CS = (C_BEATS > SET_BEATS) ? C_BEATS : SET_BEATS;
    localparam MAX_BEATS = (MAX_AB > MAX_CS) ? MAX_AB : MAX_CS;
    localparam BEAT_BITS = (MAX_BEATS < 2) ? 1 : $clog2(MAX_BEATS);
    // A tile owns the array's input for PERIOD cycles.
    localparam STEP_BITS = $clog2(PERIOD);
    localparam LAST_STEP = K - 1;
    localparam BEFORE_LAST = PERIOD - 2;
    localparam RELEASE = (PERIOD > 3) ? PERIOD - 3 : 0;  // see fhecore_collect.v
    localparam SHIFT_BITS = $clog2(W);
    localparam BUF_BITS = (BUFS < 2) ? 1 : $clog2(BUFS);

    // Config.need_wrapper in config.py has the same limits.
    generate
        if (W < 16 || W > 32) begin : g_bad_width
            fhecore_needs_w_of_16_to_32 w_out_of_range ();
        end
        if (SLOTS < 2 || SLOTS > 64 || (SLOTS & (SLOTS - 1)) != 0) begin : g_bad_slots
            fhecore_needs_slots_a_power_of_two_of_2_to_64 slots_not_possible ();
        end
        if ((R * K) % LANES != 0 || (K * C) % LANES != 0 || (R * C) % LANES != 0) begin : g_bad_lanes
            fhecore_needs_lanes_that_divide_all_operands lanes_do_not_divide ();
        end
    endgenerate

    wire                    write_a, write_b, write_c, write_set, write_last, write_half;
    wire [BEAT_BITS-1:0]    write_beat;
    wire [SLOT_BITS-1:0]    write_slot, tile_slot;
    wire                    tile_ready, tile_half, tile_use_c;
    wire [TAG_BITS-1:0]     tile_tag;
    wire                    start;

    // ---- sequencer: the tile that streams ----
    reg                     run;
    reg                     vacant;  // idle, or in a tile's last cycle: the next one may start
    reg [STEP_BITS-1:0]     step;
    reg                     run_half, run_bank;
    reg [BUF_BITS-1:0]      run_buf;
    reg [C*SHIFT_BITS-1:0]  run_shift;
    wire                    run_last = run & vacant;
    wire                    release_set = run & (step == RELEASE[STEP_BITS-1:0]);

    wire                    free, bank_ready, bank;
    wire [1:0]              bank_busy;
    wire [BUF_BITS-1:0]     next_buf;
    wire [C*SHIFT_BITS-1:0] shift;
    wire [C-1:0]            invalid, overflow;
    assign start = tile_ready & vacant & free & bank_ready;
    always @(posedge clk) begin
        if (rst) run <= 1'b0;
        else run <= start | (run & ~vacant);
        if (rst) vacant <= 1'b1;
        else vacant <= ~start & (vacant | (step == BEFORE_LAST[STEP_BITS-1:0]));
        if (start) step <= {STEP_BITS{1'b0}};
        else if (run) step <= step + 1'b1;
        if (start) begin
            run_half <= tile_half;
            run_bank <= bank;
            run_buf <= next_buf;
            run_shift <= shift;
        end
    end

    fhecore_collect #(.A_BEATS(A_BEATS), .B_BEATS(B_BEATS), .C_BEATS(C_BEATS), .SET_BEATS(SET_BEATS),
                      .BEAT_BITS(BEAT_BITS), .SLOT_BITS(SLOT_BITS), .TAG_BITS(TAG_BITS)) collect (
        .clk(clk), .rst(rst),
        .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_setc(cmd_setc), .cmd_slot(cmd_slot),
        .cmd_use_c(cmd_use_c), .cmd_tag(cmd_tag), .rf_valid(rf_valid), .rf_ready(rf_ready),
        .write_a(write_a), .write_b(write_b), .write_c(write_c), .write_set(write_set),
        .write_last(write_last), .write_beat(write_beat), .write_half(write_half), .write_slot(write_slot),
        .tile_ready(tile_ready), .tile_half(tile_half), .tile_slot(tile_slot), .tile_use_c(tile_use_c),
        .tile_tag(tile_tag), .start(start), .release_set(release_set), .release_half(run_half));

    wire [C*W-1:0]     q0, q1;
    wire [C*(W+5)-1:0] mu0, mu1;
    fhecore_constants #(.W(W), .C(C), .LANES(LANES), .SLOTS(SLOTS), .SLOT_BITS(SLOT_BITS),
                        .SHIFT_BITS(SHIFT_BITS), .SET_BEATS(SET_BEATS)) constants (
        .clk(clk), .rst(rst), .write(write_set), .write_last(write_last), .write_slot(write_slot),
        .write_data(rf_data), .slot(tile_slot), .start(start), .bank_busy(bank_busy),
        .ready(bank_ready), .bank(bank), .shift(shift), .invalid(invalid),
        .q0(q0), .q1(q1), .mu0(mu0), .mu1(mu1));

    wire [R*W-1:0] a_col;
    wire [C*W-1:0] b_row, c_row;
    wire           k_valid;
    fhecore_staging #(.W(W), .R(R), .C(C), .K(K), .LANES(LANES), .PTX(PTX), .BEAT_BITS(BEAT_BITS),
                      .SHIFT_BITS(SHIFT_BITS)) staging (
        .clk(clk), .rst(rst), .write_a(write_a), .write_b(write_b), .write_c(write_c),
        .write_half(write_half), .write_beat(write_beat), .write_data(rf_data), .start(start),
        .start_half(tile_half), .start_use_c(tile_use_c), .run_shift(run_shift), .a_col(a_col),
        .b_row(b_row), .c_row(c_row), .k_valid(k_valid), .overflow(overflow));

    wire [C*W-1:0] d_bus;
    wire [C-1:0]   d_valid;
    fhecore_array #(.W(W), .R(R), .C(C), .CARRY_SAVE(CARRY_SAVE), .CELLS(CELLS)) array (
        .clk(clk), .rst(rst), .a_col(a_col), .b_row(b_row), .c_row(c_row), .valid_in(k_valid),
        .first_in(step == 0), .last_in(step == LAST_STEP[STEP_BITS-1:0]), .bank_in(run_bank),
        .q0(q0), .q1(q1), .mu0(mu0), .mu1(mu1), .d_bus(d_bus), .d_valid(d_valid));

    fhecore_results #(.W(W), .R(R), .C(C), .LANES(LANES), .PTX(PTX), .SHIFT_BITS(SHIFT_BITS),
                      .TAG_BITS(TAG_BITS), .BUFS(BUFS), .BUF_BITS(BUF_BITS)) results (
        .clk(clk), .rst(rst), .free(free), .next(next_buf), .start(start), .start_tag(tile_tag),
        .start_shift(shift), .start_invalid(invalid), .start_bank(bank), .bank_busy(bank_busy),
        .run(run), .run_last(run_last), .run_buf(run_buf), .overflow(overflow), .d_bus(d_bus),
        .d_valid(d_valid), .res_valid(res_valid), .res_ready(res_ready), .res_tag(res_tag),
        .res_fault(res_fault), .res_data(res_data), .res_last(res_last));
endmodule

`default_nettype wire
