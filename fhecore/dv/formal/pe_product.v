// Levels 1 and 2: the product register holds a*b + (first ? c : 0), all inputs free. Two bits more than the
// register: the sum does not wrap.
module pe_product
`include "pe_ports.vh"
`include "pe_window.vh"

    wire [2*W-1:0] p2;
    wire [2*W+1:0] factor_a = a[2];
    wire [2*W+1:0] factor_b = b[2];
    wire [2*W+1:0] addend = first[2] ? c[2] : 0;

    always @* if (age == 2) assert (p2 == factor_a * factor_b + addend);
endmodule
