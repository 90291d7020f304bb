// Order of commands through the collector, against a list of the property's own, from reset on: a tile starts
// after exactly the SETCs in front of it, with its own slot, tag and form; its slot is shown in the cycle
// before; no beat goes into an operand set that is still read. rst may last: shorter windows are included.
module collect_order #(
    parameter SET_BEATS = 1,
    parameter AB_BEATS = 1,  // beats of A and of B
    parameter C_BEATS = 1,
    parameter EDGES = 14
) (
    input clk, rst, cmd_valid, cmd_setc, cmd_slot, cmd_use_c, cmd_tag, rf_valid, may_start, may_release
);
    wire cmd_ready, rf_ready, write_a, write_b, write_c, write_set, write_last, write_half, write_slot;
    wire write_beat, tile_ready, tile_half, tile_slot, tile_use_c, tile_tag;
    // As fhecore.v: one tile streams at a time, its set is released once before the next may start, and the
    // constants' verdict is away for three cycles after a start.
    reg       streams = 0, stream_half = 0;
    reg [1:0] rest = 0;
    wire      start = tile_ready & may_start & ~streams & (rest == 0);
    wire      release_set = streams & may_release;
    fhecore_collect #(.A_BEATS(AB_BEATS), .B_BEATS(AB_BEATS), .C_BEATS(C_BEATS), .SET_BEATS(SET_BEATS),
                      .BEAT_BITS(1), .SLOT_BITS(1), .TAG_BITS(1)) dut (
        .clk(clk), .rst(rst), .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_setc(cmd_setc),
        .cmd_slot(cmd_slot), .cmd_use_c(cmd_use_c), .cmd_tag(cmd_tag), .rf_valid(rf_valid),
        .rf_ready(rf_ready), .write_a(write_a), .write_b(write_b), .write_c(write_c),
        .write_set(write_set), .write_last(write_last), .write_beat(write_beat), .write_half(write_half),
        .write_slot(write_slot), .tile_ready(tile_ready), .tile_half(tile_half), .tile_slot(tile_slot),
        .tile_use_c(tile_use_c), .tile_tag(tile_tag), .start(start), .release_set(release_set),
        .release_half(stream_half));

    // Tiles accepted and not started, oldest first: slot, use_c, tag, and the SETCs accepted before it.
    // Two commands wait, one is collected, two tiles are full: five at most.
    reg [6:0] list [0:7];
    reg [2:0] head = 0, tail = 0;
    reg [3:0] sets_in = 0, sets_written = 0;
    wire      push = cmd_valid & cmd_ready;
    wire      written = write_set & write_last;
    wire [6:0] first = list[head];
    wire       any = write_a | write_b | write_c;
    reg [4:0] age = 0;
    reg       slot_1, start_1 = 0;
    reg [1:0] in_use = 0;  // halves whose tile is complete and not yet released
    always @(posedge clk) begin
        age <= age == 31 ? 31 : age + 1;
        slot_1 <= tile_slot;
        start_1 <= start;
        if (rst) begin
            head <= 0;
            tail <= 0;
            sets_in <= 0;
            sets_written <= 0;
            streams <= 0;
            rest <= 0;
            in_use <= 0;
        end else begin
            if (push & ~cmd_setc) begin
                list[tail] <= {cmd_slot, cmd_use_c, cmd_tag, sets_in};
                tail <= tail + 1;
            end
            if (push & cmd_setc) sets_in <= sets_in + 1;
            if (written) sets_written <= sets_written + 1;
            if (start) head <= head + 1;
            streams <= start | (streams & ~release_set);
            if (start) stream_half <= tile_half;
            rest <= start ? 3 : rest == 0 ? 0 : rest - 1;
            if (any & write_last) in_use[write_half] <= 1;
            if (release_set) in_use[stream_half] <= 0;
        end
    end
    always @* if (age == 0) assume (rst);

    always @* if (age == EDGES) begin
        if (start) begin
            assert (head != tail);
            assert ({tile_slot, tile_use_c, tile_tag} == first[6:4]);
            assert (sets_written == first[3:0]);
            assert (in_use[tile_half]);
        end
        // What fhecore_constants relies on.
        if (tile_ready && !start_1) assert (tile_slot == slot_1);
        if (any) assert (!in_use[write_half]);
        if (any) assert (!write_set);
        if (written) assert (sets_written != sets_in);
    end
endmodule
