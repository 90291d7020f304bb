// Lookup of a tile's constants ahead of its start: whatever the order in which slots change, sets are
// written, tiles start and banks are loaded, a verdict that is ready is that of the slot and the table now.
// Starts in any state, as pe_window.vh; only the end of the window is looked at.
//
// What the unit around it must keep (collect_order.v proves it of the collector): a tile starts only when
// ready, and its slot is the same in the cycle before.
module constants_lookup #(
    parameter W = 16,
    parameter C = 2,
    parameter LANES = 8,
    parameter SLOT_BITS = 1
) (
    input clk, rst, write, write_last, go,
    input [SLOT_BITS-1:0] write_slot, slot,
    input [LANES*W-1:0]   write_data,
    input [1:0]           bank_busy
);
    localparam MU = W + 5, PAIR = C * (W + MU), ENTRY = PAIR + C * 5;  // s of 4 bits and the fault bit
    localparam EDGES = 6;
    wire           ready, bank;
    wire [C*4-1:0] shift;
    wire [C-1:0]   invalid;
    wire [C*W-1:0]  q0, q1;
    wire [C*MU-1:0] mu0, mu1;
    wire start = go & ready;
    fhecore_constants #(.W(W), .C(C), .LANES(LANES), .SLOTS(1 << SLOT_BITS), .SLOT_BITS(SLOT_BITS),
                        .SHIFT_BITS(4), .SET_BEATS(1)) dut (
        .clk(clk), .rst(rst), .write(write), .write_last(write_last), .write_slot(write_slot),
        .write_data(write_data), .slot(slot), .start(start), .bank_busy(bank_busy), .ready(ready),
        .bank(bank), .shift(shift), .invalid(invalid), .q0(q0), .q1(q1), .mu0(mu0), .mu1(mu1));

    // Tied to the wires of the same names by the script.
    wire [ENTRY-1:0] found;   // what the table holds for the slot now
    wire [ENTRY-1:0] entry;
    wire [1:0]       loaded;
    wire             miss;

    // Values one, two and three edges ago.
    reg [3:0]           age = 0;
    reg [SLOT_BITS-1:0] slot_1;
    reg                 start_1, start_2, bank_1, bank_2, rst_1;
    reg [1:0]           busy_1, busy_2, busy_3;
    reg [2:0]           quiet = 0;  // cycles, up to this one, without set, start and reset and of one slot
    reg [PAIR-1:0]      found_1, found_2;
    reg [PAIR-1:0]      bank0_1, bank1_1;
    wire disturbed = rst | start | (write & write_last);
    always @(posedge clk) begin
        age <= age == 15 ? 15 : age + 1;
        slot_1 <= slot;
        rst_1 <= rst;
        {start_2, start_1} <= {start_1 & ~rst, start & ~rst};
        {bank_2, bank_1} <= {bank_1, bank};
        {busy_3, busy_2, busy_1} <= {busy_2, busy_1, bank_busy};
        {found_2, found_1} <= {found_1, found[PAIR-1:0]};
        {bank1_1, bank0_1} <= {mu1, q1, mu0, q0};
        quiet <= (disturbed | slot != slot_1) ? 0 : quiet == 7 ? 7 : quiet + 1;
    end
    always @* if (age > 0 && start) assume (slot == slot_1);

    // A write, decoded here once more: the slot reads as this until the next one.
    (* anyconst *) reg [SLOT_BITS-1:0] which;
    reg              seen = 0;
    reg [ENTRY-1:0]  last_set;
    wire [C-1:0]     wrong;
    genvar j;
    generate
        for (j = 0; j < C; j = j + 1) begin : column
            wire [W-1:0] q = write_data[j*W +: W], high = write_data[(2*C+j)*W +: W];
            assign wrong[j] = q <= (1 << (W-4)) || high[11:8] > W - 2 || (high & 16'hf0e0) != 0
                           || write_data[(3*C+j)*W +: W] != 0;
        end
    endgenerate
    always @(posedge clk)
        if (rst) seen <= 0;
        else if (write && write_last && write_slot == which) begin
            seen <= 1;
            last_set <= {wrong, write_data[(2*C+1)*W+8 +: 4], write_data[2*C*W+8 +: 4],
                         write_data[(2*C+1)*W +: 5], write_data[(C+1)*W +: W],
                         write_data[2*C*W +: 5], write_data[C*W +: W], write_data[0 +: C*W]};
        end

    wire [PAIR-1:0] mine = bank ? {mu1, q1} : {mu0, q0};
    always @* if (age == EDGES) begin
        // The table.
        if (seen && slot == which) assert (found == last_set);
        // The verdict.
        if (ready && slot == slot_1) begin
            assert (entry == found);
            assert ({invalid, shift} == found[ENTRY-1:PAIR]);
            if (miss) begin
                assert (!busy_1[bank]);
                assert (!loaded[0] || {mu0, q0} != found[PAIR-1:0]);
                assert (!loaded[1] || {mu1, q1} != found[PAIR-1:0]);
            end else assert (loaded[bank] && mine == found[PAIR-1:0]);
        end
        if (start_1) assert (!ready);
        // The bank that the tile uses, from the second edge after the start on.
        if (start_2 && !rst) assert (loaded[bank_2] && (bank_2 ? {mu1, q1} : {mu0, q0}) == found_2);
        // A bank changes for a start only (a reset forgets the start, not the load), and only one that nobody
        // used when the verdict fell.
        if ({mu0, q0} != bank0_1 && !rst_1) assert (start_2 && !bank_2 && !busy_3[0]);
        if ({mu1, q1} != bank1_1 && !rst_1) assert (start_2 && bank_2 && !busy_3[1]);
        // And it does fall: three cycles of rest, a bank to be had.
        if (quiet >= 3 && !disturbed && busy_1 == 0) assert (ready);
    end
endmodule
