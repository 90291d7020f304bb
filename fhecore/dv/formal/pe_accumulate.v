// The accumulating stage at full width: with any r2 < 2q in its registers (pe_reduce gives that) and acc < q
// or a first step, the next acc is again below q and congruent to acc + r2. Both at once.
// The script cuts the registers of r2 free and ties them to r5 (or r5s, r5c) here.
module pe_accumulate
`include "pe_ports.vh"
`include "pe_window.vh"

`include "pe_remainder.vh"
    reg  [W+1:0] r2_before;
    always @(posedge clk) r2_before <= r2;
    wire [W+2:0] q6 = bank[6] ? q1 : q0;
    wire [W+2:0] total = (first[6] ? 0 : acc_before) + {1'b0, r2_before};
    wire [W+2:0] next = acc;

    always @* begin
        assume (q0 != 0 && q1 != 0);
        if (age == 6 && valid[6] && !rst_before) begin
            assume (first[6] || acc_before < q6);
            assume (r2_before < 2 * q6);
            assert (next < q6);
            assert (next == total || next + q6 == total || next + 2 * q6 == total);
        end
    end
endmodule
