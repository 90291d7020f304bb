// Column constants from power-up in four-valued simulation: registers and the table start as X, reset clears
// control only. Tiles of slots that were set and of slots that never were: what steers the unit is never X.
module unknowns (
    input wire clk,
    input wire rst
);
    localparam W = 16;
    localparam C = 2;
    localparam LANES = 8;

    reg [2:0] n;      // cycle of the present tile
    reg [2:0] tile;
    always @(posedge clk)
        if (rst) {tile, n} <= 6'd0;
        else begin
            n <= (n == 3'd5) ? 3'd0 : n + 3'd1;
            if (n == 3'd5) tile <= tile + 3'd1;
        end

    // Per column: q', mu of 21 bits in two words, a reserved word. Slot 1 is set as the first tile, of
    // another slot, starts; the tiles of slot 1 find it in a bank from the second on, those of other
    // slots were never set. Each starts in its last cycle, when the verdict has long fallen.
    wire [LANES*W-1:0] fragment = {32'd0, {2{16'd3}}, {2{16'hfff4}}, {2{16'h8003}}};
    wire               write = tile == 3'd0 && n == 3'd5;
    wire               start = n == 3'd5;
    wire [1:0]         slot = (tile == 3'd1 || tile == 3'd3 || tile == 3'd4) ? 2'd1 : tile[1:0] | 2'd2;

    wire         ready, bank;
    wire [2*4-1:0]  shift;
    wire [C-1:0] invalid;
    fhecore_constants #(.W(W), .C(C), .LANES(LANES), .SLOTS(4), .SLOT_BITS(2), .SHIFT_BITS(4),
                        .SET_BEATS(1)) dut (
        .clk(clk), .rst(rst), .write(write), .write_last(1'b1), .write_slot(2'd1),
        .write_data(fragment), .slot(slot), .start(start), .bank_busy(2'b00), .ready(ready),
        .bank(bank), .shift(shift), .invalid(invalid));

    wire parity = ^{ready, bank, shift, invalid};
    wire [1:0] expected = (slot == 2'd1) ? 2'b00 : 2'b11;
    always @(posedge clk)
        if (!rst) begin
            assert (ready === 1'b0 || parity === 1'b0 || parity === 1'b1);
            if (start) assert (ready === 1'b1 && invalid === expected);
        end
endmodule
