// Control of a processing element with its multipliers cut out (any values): operands and control go on after
// one edge, done is up for exactly the edge six after a valid last step, acc changes for valid steps only,
// and a reset drops every step in flight.
module pe_control
`include "pe_ports.vh"
`include "pe_window.vh"

    always @* begin
        if (age >= 1) begin
            assert (valid_out == valid[1]);
            assert (rst_before || (a_out == a[1] && b_out == b[1]));
            if (valid[1]) begin
                assert (first_out == first[1]);
                assert (last_out == last[1]);
                assert (bank_out == bank[1]);
            end
        end
        if (age >= 6) begin
            assert (done == (valid[6] && last[6]));
            assert (valid[6] || rst_before || acc == acc_before);
        end
    end
endmodule
