// Command and operand intake of the FHECore unit.
//
// Commands wait in two entries; the beats of an accepted command follow on the rf channel in command order:
// SETC: the constants fragment. FHEC: A, then B, then C if the command uses it. Two operand sets are filled
// in turn, one while the other streams. release_set comes two cycles before the one that reads the last step
// of the set: the first beat can then be written at the very edge at which the array samples that step.
//
// The last beat of SETC waits until every collected tile has started (or starts in that very cycle): tiles
// take their constants when they start, so a tile sees exactly the SETCs that were before it.
`default_nettype none

module fhecore_collect #(
    parameter A_BEATS = 8,
    parameter B_BEATS = 4,
    parameter C_BEATS = 4,
    parameter SET_BEATS = 1,
    parameter BEAT_BITS = 3,   // bits that number the beats of one operand
    parameter SLOT_BITS = 4,
    parameter TAG_BITS = 8
) (
    input  wire                 clk,
    input  wire                 rst,
    // commands
    input  wire                 cmd_valid,
    output wire                 cmd_ready,
    input  wire                 cmd_setc,
    input  wire [SLOT_BITS-1:0] cmd_slot,
    input  wire                 cmd_use_c,
    input  wire [TAG_BITS-1:0]  cmd_tag,
    // operand beats (their data go straight to the buffers)
    input  wire                 rf_valid,
    output wire                 rf_ready,
    // writes of this cycle
    output wire                 write_a,
    output wire                 write_b,
    output wire                 write_c,
    output wire                 write_set,     // beat of a constants fragment
    output wire                 write_last,    // the last beat of the command
    output wire [BEAT_BITS-1:0] write_beat,    // number within its operand
    output wire                 write_half,    // operand set that is being filled
    output wire [SLOT_BITS-1:0] write_slot,
    // oldest collected tile
    output wire                 tile_ready,
    output wire                 tile_half,     // the operand set it is in
    output wire [SLOT_BITS-1:0] tile_slot,     // while none is collected: of the one that is being collected
    output wire                 tile_use_c,
    output wire [TAG_BITS-1:0]  tile_tag,
    input  wire                 start,         // it starts in this cycle
    input  wire                 release_set,   // the streaming set may be filled again
    input  wire                 release_half
);
    localparam [1:0] AT_A = 2'd0, AT_B = 2'd1, AT_C = 2'd2, AT_SET = 2'd3;
    localparam CMD_BITS = 2 + SLOT_BITS + TAG_BITS;

    // ---- command queue: entry 0 is the older ----
    reg [CMD_BITS-1:0] queue0, queue1;
    reg [1:0]          queued;
    wire               take;          // the collector takes entry 0
    wire               push = cmd_valid & cmd_ready;
    wire [CMD_BITS-1:0] cmd = {cmd_setc, cmd_use_c, cmd_slot, cmd_tag};
    assign cmd_ready = ~queued[1];
    always @(posedge clk) begin
        if (rst) queued <= 2'd0;
        else queued <= queued + {1'b0, push} - {1'b0, take};
        if (take) queue0 <= queue1;
        if (push) begin
            if (queued == {1'b0, take}) queue0 <= cmd;
            else queue1 <= cmd;
        end
    end

    // ---- collector ----
    reg                 busy;
    reg                 use_c;
    reg [SLOT_BITS-1:0] slot;
    reg [TAG_BITS-1:0]  tag;
    reg [1:0]           phase;
    reg [BEAT_BITS-1:0] beat;
    reg                 fill;         // set to fill
    reg [1:0]           full;         // set holds a tile that waits or streams
    reg [1:0]           waiting;      // collected tiles that have not started
    reg                 oldest;       // set of the oldest of them

    wire is_set = (phase == AT_SET);
    wire [31:0] beats = phase == AT_A ? A_BEATS : phase == AT_B ? B_BEATS
                      : phase == AT_C ? C_BEATS : SET_BEATS;
    wire last_of_operand = {{(32-BEAT_BITS){1'b0}}, beat} + 1 == beats;
    wire last_operand = is_set | (phase == AT_C) | (phase == AT_B & ~use_c);
    wire last = last_of_operand & last_operand;
    wire all_started = (waiting == {1'b0, start});
    assign rf_ready = busy & (~(is_set & last) | all_started);
    wire accept = rf_ready & rf_valid;
    wire finish = accept & last;
    // Operands never wait. Saying so keeps `start` out of the enables of 32,000 registers and out of what
    // their last beat sets off.
    wire operand = busy & rf_valid & ~is_set;
    wire collected = operand & last;

    // The next command: SETC at once, FHEC when its set is writable.
    wire head_setc = queue0[CMD_BITS-1];
    wire next_fill = fill ^ collected;
    assign take = (queued != 2'd0) & (~busy | finish) & (head_setc | ~full[next_fill]);

    always @(posedge clk) begin
        if (rst) begin
            busy <= 1'b0;
            fill <= 1'b0;
            full <= 2'b00;
            waiting <= 2'd0;
            oldest <= 1'b0;
        end else begin
            busy <= take | (busy & ~finish);
            fill <= next_fill;
            if (release_set) full[release_half] <= 1'b0;
            if (collected) full[fill] <= 1'b1;
            waiting <= waiting + {1'b0, collected} - {1'b0, start};
            oldest <= oldest ^ start;
        end
        if (take) begin
            {use_c, slot, tag} <= queue0[CMD_BITS-2:0];
            phase <= head_setc ? AT_SET : AT_A;
            beat <= {BEAT_BITS{1'b0}};
        end else if (accept) begin
            beat <= last_of_operand ? {BEAT_BITS{1'b0}} : beat + 1'b1;
            if (last_of_operand) phase <= (phase == AT_A) ? AT_B : AT_C;
        end
    end

    assign write_a = operand & (phase == AT_A);
    assign write_b = operand & (phase == AT_B);
    assign write_c = operand & (phase == AT_C);
    assign write_set = accept & is_set;
    assign write_last = last;
    assign write_beat = beat;
    assign write_half = fill;
    assign write_slot = slot;

    // ---- what a collected tile needs later, per set ----
    reg [SLOT_BITS+TAG_BITS:0] held0, held1;
    always @(posedge clk) begin
        if (collected & ~fill) held0 <= {use_c, slot, tag};
        if (collected & fill) held1 <= {use_c, slot, tag};
    end
    assign tile_ready = (waiting != 2'd0);
    assign tile_half = oldest;
    wire [SLOT_BITS-1:0] held_slot;
    assign {tile_use_c, held_slot, tile_tag} = oldest ? held1 : held0;
    // Its constants are looked up while its operands still come: no SETC can write between the command's take
    // and the start, for it would be behind the tile.
    assign tile_slot = tile_ready ? held_slot : slot;
endmodule

`default_nettype wire
