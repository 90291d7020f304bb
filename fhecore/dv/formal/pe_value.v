// One step of a processing element, all inputs and constants free: acc becomes
// ((first ? 0 : acc) + a*b + (first ? c : 0)) mod q of the step's bank, six edges after the step was sampled.
// Hypothesis: acc < q before a step that is not the first (pe_accumulate shows that steps keep it so).
module pe_value
`include "pe_ports.vh"
`include "pe_window.vh"

    wire [3*W-1:0] one = 1;
    wire [3*W-1:0] wide_q0 = q0;
    wire [3*W-1:0] wide_q1 = q1;
    wire [3*W-1:0] wide_mu0 = mu0;
    wire [3*W-1:0] wide_mu1 = mu1;
    wire [2*W:0]   addend = first[6] ? c[6] : acc_before;
    wire [2*W:0]   total = {{(W+1){1'b0}}, a[6]} * {{(W+1){1'b0}}, b[6]} + addend;
    wire [2*W:0]   q6 = bank[6] ? q1 : q0;

    always @* begin
        assume (wide_q0 > (one << (W-4)));
        assume (wide_q1 > (one << (W-4)));
        assume (wide_mu0 * wide_q0 <= UNIT && (wide_mu0 + one) * wide_q0 > UNIT);
        assume (wide_mu1 * wide_q1 <= UNIT && (wide_mu1 + one) * wide_q1 > UNIT);
        if (age == 6 && valid[6] && !rst_before) begin
            assume (first[6] || acc_before < q6);
            assert (acc == total % q6);
        end
    end
endmodule
