// Column constants of the FHECore unit: a table, one set a warp slot, and the two banks that the array uses.
//
// A set is (q', mu, s) a column. Its fragment, in beats of LANES words: word n is of column n % C; the words
// n / C = 0, 1, 2 are q', the low W bits of mu, and mu's upper 5 bits with s << 8; further words are 0.
// A column is invalid when q' is not in (2^(W-4), 2^W), s > W-2, or a reserved bit is set; and when its slot
// was never set since reset. (mu is not checked against q'.) W >= 16.
//
// A tile takes the bank that holds its slot's constants, else the one that the tile before did not use,
// which it loads once no tile in flight needs it. Banks are found by their words, not by the slot: warps that
// compute modulo the same primes share one.
//
// Finding takes three edges: the table is read into `entry`; that is compared with both banks; the verdict is
// registered, so that a start waits for no more than one gate here. `ready` holds back until slot, table and
// banks have stood still for all three. Nobody waits for that: a tile's slot is known before its operands
// come. A bank is loaded one edge after the start; the array needs it later still.
`default_nettype none

module fhecore_constants #(
    parameter W = 32,
    parameter C = 8,
    parameter LANES = 32,
    parameter SLOTS = 16,
    parameter SLOT_BITS = 4,
    parameter SHIFT_BITS = 5,
    parameter SET_BEATS = 1
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire                    write,        // a beat of a fragment
    input  wire                    write_last,
    input  wire [SLOT_BITS-1:0]    write_slot,
    input  wire [LANES*W-1:0]      write_data,
    // The tile that starts next. One that starts has had its slot in the cycle before, too.
    input  wire [SLOT_BITS-1:0]    slot,
    input  wire                    start,        // only when ready
    input  wire [1:0]              bank_busy,    // tiles in flight need the bank
    output reg                     ready,        // a bank is there for it; 3 cycles after its slot was new
    output reg                     bank,         // which
    output wire [C*SHIFT_BITS-1:0] shift,
    output wire [C-1:0]            invalid,
    // to the array
    output reg  [C*W-1:0]          q0,
    output reg  [C*W-1:0]          q1,
    output reg  [C*(W+5)-1:0]      mu0,
    output reg  [C*(W+5)-1:0]      mu1
);
    localparam WORDS = SET_BEATS * LANES;
    localparam MU = W + 5;
    localparam ENTRY = C * (W + MU + SHIFT_BITS + 1);
    localparam HIGH = 8;  // place of s in the third word
    localparam MAX_SHIFT = W - 2;

    // ---- fragment: the earlier beats are held, the last one comes with the write ----
    wire [WORDS*W-1:0] fragment;
    generate
        if (SET_BEATS == 1) begin : whole
            assign fragment = write_data;
        end else begin : parts
            reg [(SET_BEATS-1)*LANES*W-1:0] held;
            always @(posedge clk)
                if (write) held <= fragment[LANES*W +: (SET_BEATS-1)*LANES*W];
            assign fragment = {write_data, held};
        end
    endgenerate

    wire [C*W-1:0]          set_q;
    wire [C*MU-1:0]         set_mu;
    wire [C*SHIFT_BITS-1:0] set_shift;
    wire [C-1:0]            set_invalid;
    genvar j, n;
    generate
        for (j = 0; j < C; j = j + 1) begin : column
            wire [W-1:0] q = fragment[j*W +: W];
            wire [W-1:0] high = fragment[(2*C+j)*W +: W];
            localparam EXTRA = (WORDS - 3*C - j + C - 1) / C;  // reserved words of this column
            wire [W*(EXTRA+1)-1:0] reserved;
            assign reserved[0 +: W] = high & ~({{(W-5){1'b0}}, 5'h1f}
                                             | ({{(W-SHIFT_BITS){1'b0}}, {SHIFT_BITS{1'b1}}} << HIGH));
            for (n = 0; n < EXTRA; n = n + 1) begin : rest
                assign reserved[(n+1)*W +: W] = fragment[((3+n)*C+j)*W +: W];
            end
            wire [SHIFT_BITS-1:0] s = high[HIGH +: SHIFT_BITS];
            wire in_range = (|q[W-1:W-4]) & (q != {4'd1, {(W-4){1'b0}}});  // q' > 2^(W-4)
            assign set_q[j*W +: W] = q;
            assign set_mu[j*MU +: MU] = {high[4:0], fragment[(C+j)*W +: W]};
            assign set_shift[j*SHIFT_BITS +: SHIFT_BITS] = s;
            assign set_invalid[j] = ~in_range | (|reserved) | (s > MAX_SHIFT[SHIFT_BITS-1:0]);
        end
    endgenerate

    // ---- table ----
    reg [ENTRY-1:0] table_sets [0:SLOTS-1];
    reg [SLOTS-1:0] known;
    wire set = write & write_last;
    always @(posedge clk) begin
        if (set) table_sets[write_slot] <= {set_invalid, set_shift, set_mu, set_q};
        if (rst) known <= {SLOTS{1'b0}};
        else if (set) known[write_slot] <= 1'b1;
    end

    // ---- first edge: the set ----
    // A slot that was never set reads as 0, all columns invalid: noise in the table must not reach the
    // comparison below.
    wire [ENTRY-1:0] found = known[slot] ? table_sets[slot] : {{C{1'b1}}, {(ENTRY-C){1'b0}}};
    reg  [ENTRY-1:0] entry;
    reg  [SLOT_BITS-1:0] entry_slot;
    reg              entry_current;
    always @(posedge clk) begin
        entry <= found;
        entry_slot <= slot;
        entry_current <= ~set & ~rst;
    end
    wire [C*W-1:0]   entry_q = entry[0 +: C*W];
    wire [C*MU-1:0]  entry_mu = entry[C*W +: C*MU];
    assign shift = entry[C*(W+MU) +: C*SHIFT_BITS];
    assign invalid = entry[ENTRY-1 -: C];

    // What one edge has found still holds after the next when the slot is the same, no set is written and no
    // bank is loaded at that edge, or after it for a tile that has just started.
    reg  load;
    wire still = (slot == entry_slot) & ~set & ~load & ~start & ~rst;

    // ---- second edge: the banks that hold it ----
    reg [1:0] loaded;
    reg [1:0] hit;
    reg       hit_current;
    always @(posedge clk) begin
        hit <= loaded & {{entry_q, entry_mu} == {q1, mu1}, {entry_q, entry_mu} == {q0, mu0}};
        hit_current <= entry_current & still;
    end

    // ---- third edge: the verdict ----
    reg  latest;  // bank of the tile before
    reg  miss;    // the bank has to be loaded
    wire choice = hit[1] | (~hit[0] & ~latest);
    always @(posedge clk) begin
        ready <= hit_current & still & ((|hit) | ~bank_busy[choice]);
        bank <= choice;
        miss <= ~(|hit);
    end

    // ---- banks ----
    // The entry is read again at the edge of the start, and then from the table before any set of that edge:
    // it is still the tile's own when the bank takes it.
    always @(posedge clk) begin
        if (rst) begin
            load <= 1'b0;
            loaded <= 2'b00;
            latest <= 1'b1;
        end else begin
            load <= start & miss;
            if (load) loaded[latest] <= 1'b1;
            if (start) latest <= bank;
        end
        if (load & ~latest) {q0, mu0} <= {entry_q, entry_mu};
        if (load & latest) {q1, mu1} <= {entry_q, entry_mu};
    end
endmodule

`default_nettype wire
