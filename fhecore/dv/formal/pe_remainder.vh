// r2 as the element holds it: one register in modmul_pe, two rows in modmul_pe_cs.
`ifdef CARRY_SAVE
    wire [W+1:0] r5s, r5c;
    wire [W+1:0] r2 = r5s + r5c;
`else
    wire [W+1:0] r5;
    wire [W+1:0] r2 = r5;
`endif
