// Column constants from power-up in four-valued simulation: registers and the table start as X, reset clears
// control only. Tiles of slots that were set and of slots that never were: what steers the unit is never X.
module unknowns (
    input wire clk,
    input wire rst
);
    localparam W = 16;
    localparam C = 2;
    localparam LANES = 8;

    reg [2:0] n;
    always @(posedge clk) n <= rst ? 3'd0 : n + 3'd1;

    // Per column: q', mu of 21 bits in two words, a reserved word. Set in cycle 1; the tiles of slot 1 hit
    // in cycles 4 and 7, those of other slots are never set.
    wire [LANES*W-1:0] fragment = {32'd0, {2{16'd3}}, {2{16'hfff4}}, {2{16'h8003}}};
    wire               write = n == 3'd1;
    wire               start = n != 3'd1;
    wire [1:0]         slot = (n == 3'd2 || n == 3'd4 || n == 3'd7) ? 2'd1 : n[1:0] | 2'd2;

    wire         ready, bank;
    wire [2*4-1:0]  shift;
    wire [C-1:0] invalid;
    fhecore_constants #(.W(W), .C(C), .LANES(LANES), .SLOTS(4), .SLOT_BITS(2), .SHIFT_BITS(4),
                        .SET_BEATS(1)) dut (
        .clk(clk), .rst(rst), .write(write), .write_last(1'b1), .write_slot(2'd1),
        .write_data(fragment), .slot(slot), .start(start), .bank_busy(2'b00), .ready(ready),
        .bank(bank), .shift(shift), .invalid(invalid));

    wire parity = ^{ready, bank, shift, invalid};
    always @(posedge clk)
        if (!rst) begin
            assert (parity === 1'b0 || parity === 1'b1);
            assert (invalid === ((n > 3'd1 && slot == 2'd1) ? 2'b00 : 2'b11));
        end
endmodule
