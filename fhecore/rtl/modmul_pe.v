// Modular multiply-accumulate element, behavioural: acc <- (acc + a*b + c) mod q, one step a cycle.
//
// Barrett reduction with fixed shifts (fhecore/doc/microarchitecture.md): q in (2^(W-4), 2^W),
// mu = floor(2^(2W+1) / q), p = a*b + c < 2^(2W):
//   qh = ((p >> (W-5)) * mu) >> (W+6);   r2 = (p - qh*q) mod 2^(W+2), in [0, 2q).
// The bound is on p, not on a and b: operands may be any W-bit words.
// The product is reduced before it meets the accumulator, so that the loop around acc is one stage.
//
// modmul_pe_cs has the same ports and the same values in the same cycles; it is the one to synthesise.
// Operands sampled at edge n reach acc after edge n + 5, the sixth register level. c_in counts with first_in only.
// q0, mu0 (bank 0) and q1, mu1 (bank 1) may change only while no step of that bank is in flight.
module modmul_pe #(
    parameter W = 32  // word bits, 6..32
) (
    input  wire         clk,
    input  wire         rst,        // synchronous; clears control only
    input  wire [W-1:0] a_in,
    input  wire [W-1:0] b_in,
    input  wire [W-1:0] c_in,
    input  wire         valid_in,
    input  wire         first_in,
    input  wire         last_in,
    input  wire         bank_in,
    input  wire [W-1:0] q0,
    input  wire [W-1:0] q1,
    input  wire [W+4:0] mu0,
    input  wire [W+4:0] mu1,
    output reg  [W-1:0] a_out,      // neighbours' operands and control: inputs one cycle later
    output reg  [W-1:0] b_out,
    output reg          valid_out,
    output reg          first_out,
    output reg          last_out,
    output reg          bank_out,
    output reg  [W-1:0] acc,        // in [0, q)
    output reg          done        // acc holds a finished element, for this one cycle
);
    // Level 1: operands.
    reg [W-1:0] c1;
    always @(posedge clk) begin
        a_out    <= a_in;
        b_out    <= b_in;
        c1       <= first_in ? c_in : {W{1'b0}};
        bank_out <= bank_in;
        if (rst) begin
            valid_out <= 1'b0;
            first_out <= 1'b0;
            last_out  <= 1'b0;
        end else begin
            valid_out <= valid_in;
            first_out <= first_in;
            last_out  <= last_in;
        end
    end

    // Control that goes along: index = level.
    reg [5:2] valid, first, last, bank;
    always @(posedge clk) begin
        valid <= rst ? 4'b0 : {valid[4:2], valid_out};
        first <= {first[4:2], first_out};
        last  <= {last[4:2], last_out};
        bank  <= {bank[4:2], bank_out};
    end

    // Level 2: product.
    reg [2*W-1:0] p2;
    always @(posedge clk) p2 <= {{W{1'b0}}, a_out} * {{W{1'b0}}, b_out} + {{W{1'b0}}, c1};

    // Level 3: quotient estimate. Of p only the bits that r2 needs go on.
    wire [W+4:0]    mu2 = bank[2] ? mu1 : mu0;
    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: the shift drops the low half of the product by intent.
    wire [2*W+9:0]  t2 = {{(W+5){1'b0}}, p2[2*W-1:W-5]} * {{(W+5){1'b0}}, mu2};
    /* verilator lint_on UNUSEDSIGNAL */
    reg  [W+1:0]    qh3, p3;
    always @(posedge clk) begin
        qh3 <= t2[2*W+7:W+6];
        p3  <= p2[W+1:0];
    end

    // Level 4: its multiple of q.  Level 5: remainder, in [0, 2q).
    wire [W-1:0] q3 = bank[3] ? q1 : q0;
    reg  [W+1:0] m4, p4, r5;
    always @(posedge clk) begin
        m4 <= qh3 * {2'b00, q3};
        p4 <= p3;
        r5 <= p4 - m4;
    end

    // Level 6: acc + r2 - {0, q, 2q}; the sum is below 3q < 2^(W+2), so bit W+1 is each difference's sign.
    wire [W-1:0] q5 = bank[5] ? q1 : q0;
    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: the difference that is picked is below q < 2^W; of the others only the sign matters.
    wire [W+1:0] sum0 = (first[5] ? {(W+2){1'b0}} : {2'b00, acc}) + r5;
    wire [W+1:0] sum1 = sum0 - {2'b00, q5};
    wire [W+1:0] sum2 = sum0 - {1'b0, q5, 1'b0};
    /* verilator lint_on UNUSEDSIGNAL */
    always @(posedge clk) begin
        if (valid[5]) acc <= !sum2[W+1] ? sum2[W-1:0] : !sum1[W+1] ? sum1[W-1:0] : sum0[W-1:0];
        done <= !rst && valid[5] && last[5];
    end
endmodule
