// Double-buffered operand of the FHECore unit: beats in, one vector of WIDTH words a step out.
//
// A matrix arrives in beats of LANES words (a register of a warp) and leaves step by step:
//   KIND 0 (A, R x K): step k is column k, WIDTH = R.   KIND 1 (B, K x C): step k is row k, WIDTH = C.
//   KIND 2 (C, R x C): step i is row i, WIDTH = C.
// Word order. PTX = 1, the shape 16 x 8 x 16 with 32 lanes: the fragment of PTX's mma.m16n8k16 with one
// register an element (doc/isa.md). PTX = 0: element (row, column) is word row * columns + column.
// Storage is flip-flops; each output word selects among its own STEPS words of either half.
`default_nettype none

module fhecore_operand #(
    parameter W = 32,
    parameter KIND = 0,
    parameter PTX = 1,
    parameter STEPS = 16,
    parameter WIDTH = 16,
    parameter LANES = 32,
    parameter BEAT_BITS = 3
) (
    input  wire                 clk,
    input  wire                 write,
    input  wire                 write_half,
    input  wire [BEAT_BITS-1:0] write_beat,
    input  wire [LANES*W-1:0]   write_data,
    input  wire [2*STEPS-1:0]   pick,       // step, one-hot, of half 1 above those of half 0; 0: none
    output wire [WIDTH*W-1:0]   vector      // 0 for none
);
    // Word number of element `at` of the vector of step `s`.
    function integer place;
        input integer s;
        input integer at;
        integer register, lane;
        begin
            if (PTX == 0) place = (KIND == 0) ? at * STEPS + s : s * WIDTH + at;
            else begin
                case (KIND)
                    0: begin  // row at, k s
                        register = s % 2 + 2 * (at / 8) + 4 * (s / 8);
                        lane = 4 * (at % 8) + (s % 8) / 2;
                    end
                    1: begin  // k s, column at
                        register = s % 2 + 2 * (s / 8);
                        lane = 4 * at + (s % 8) / 2;
                    end
                    default: begin  // row s, column at
                        register = at % 2 + 2 * (s / 8);
                        lane = 4 * (s % 8) + at / 2;
                    end
                endcase
                place = register * LANES + lane;
            end
        end
    endfunction

    localparam BEATS = STEPS * WIDTH / LANES;
    genvar half, b, s, n;
    wire [2*STEPS*WIDTH*W-1:0] store;  // half 1 above half 0
    generate
        for (half = 0; half < 2; half = half + 1) begin : side
            for (b = 0; b < BEATS; b = b + 1) begin : row
                reg [LANES*W-1:0] words;
                always @(posedge clk)
                    if (write & (write_half == half) & (write_beat == b)) words <= write_data;
                assign store[(half*BEATS + b)*LANES*W +: LANES*W] = words;
            end
        end
        for (n = 0; n < WIDTH; n = n + 1) begin : element
            wire [2*STEPS*W-1:0] line;
            for (s = 0; s < STEPS; s = s + 1) begin : moment
                localparam AT = place(s, n);
                assign line[s*W +: W] = store[AT*W +: W] & {W{pick[s]}};
                assign line[(STEPS+s)*W +: W] = store[(STEPS*WIDTH+AT)*W +: W] & {W{pick[STEPS+s]}};
            end
            fhecore_or #(.WIDTH(W), .N(2*STEPS)) tree (.words(line), .any(vector[n*W +: W]));
        end
    endgenerate
endmodule

`default_nettype wire
