// Techmap: full_adder to the library's adder, whose outputs are inverted. Its dual (FLIP = 1) has the
// inverters at the inputs, where they meet those of the adders before it and vanish.
module full_adder (x, y, z, s, c);
    parameter FLIP = 0;
    input  x, y, z;
    output s, c;
    generate
        if (FLIP != 0) begin : g_dual
            FAx1_ASAP7_75t_R cell_ (.A(~x), .B(~y), .CI(~z), .SN(s), .CON(c));
        end else begin : g_plain
            wire sn, cn;
            FAx1_ASAP7_75t_R cell_ (.A(x), .B(y), .CI(z), .SN(sn), .CON(cn));
            assign s = ~sn;
            assign c = ~cn;
        end
    endgenerate
endmodule
