// Techmap: a full_adder with a constant input is a half adder, left to logic synthesis. Applied until
// nothing changes, as constants travel down the trees.
module full_adder (x, y, z, s, c);
    parameter FLIP = 0;
    parameter _TECHMAP_CONSTMSK_x_ = 1'b0;
    parameter _TECHMAP_CONSTMSK_y_ = 1'b0;
    parameter _TECHMAP_CONSTMSK_z_ = 1'b0;
    input  x, y, z;
    output s, c;
    wire _TECHMAP_FAIL_ = !(_TECHMAP_CONSTMSK_x_ || _TECHMAP_CONSTMSK_y_ || _TECHMAP_CONSTMSK_z_);
    wire k = _TECHMAP_CONSTMSK_x_ ? x : _TECHMAP_CONSTMSK_y_ ? y : z;
    wire u = _TECHMAP_CONSTMSK_x_ ? y : x;
    wire v = (_TECHMAP_CONSTMSK_x_ || _TECHMAP_CONSTMSK_y_) ? z : y;
    assign s = u ^ v ^ k;
    assign c = k ? (u | v) : (u & v);
endmodule
