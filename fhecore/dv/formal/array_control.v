// Movement of operands and control through the array, and when results appear; multipliers cut out.
// Element (i, j) sees row i of a_col, word j of b_row and the control bits i + j + 1 edges after they were
// sampled, word j of c_row j + 1 edges after. Column j is valid for element (i, j) exactly i + j + 7 edges after
// a valid last step, a step that no reset has met on its way. Starts in any state, as pe_window.vh.
module array_control #(
    parameter W = 6,
    parameter R = 3,
    parameter C = 2
) (
    input clk, rst, valid_in, first_in, last_in, bank_in,
    input [R*W-1:0] a_col,
    input [C*W-1:0] b_row, c_row
);
    localparam LEVELS = R + C + 5;  // of the last element's result
    (* anyconst *) reg [C*W-1:0] q0, q1;
    (* anyconst *) reg [C*(W+5)-1:0] mu0, mu1;
    wire [C*W-1:0] d_bus;
    wire [C-1:0]   d_valid;
    fhecore_array #(.W(W), .R(R), .C(C)) dut (
        .clk(clk), .rst(rst), .a_col(a_col), .b_row(b_row), .c_row(c_row), .valid_in(valid_in),
        .first_in(first_in), .last_in(last_in), .bank_in(bank_in), .q0(q0), .q1(q1), .mu0(mu0), .mu1(mu1),
        .d_bus(d_bus), .d_valid(d_valid)
    );

    // Tied to the nets of the same names by the script.
    wire [R*(C+1)*W-1:0] a_net;
    wire [R*(C+1)*4-1:0] ctl_net;
    wire [(R+1)*C*W-1:0] b_net;
    wire [C*W-1:0]       c_edge;

    // Inputs n edges ago; the valid bit falls with any reset since.
    reg [5:0]     age = 0;
    reg [R*W-1:0] a [1:LEVELS];
    reg [C*W-1:0] b [1:LEVELS];
    reg [C*W-1:0] c [1:LEVELS];
    reg [2:0]     marks [1:LEVELS];  // bank, last, first
    reg           valid [1:LEVELS];
    integer n;
    always @(posedge clk) begin
        age <= age == 63 ? 63 : age + 1;
        a[1] <= a_col;
        b[1] <= b_row;
        c[1] <= c_row;
        marks[1] <= {bank_in, last_in, first_in};
        valid[1] <= valid_in && !rst;
        for (n = 2; n <= LEVELS; n = n + 1) begin
            a[n] <= a[n-1];
            b[n] <= b[n-1];
            c[n] <= c[n-1];
            marks[n] <= marks[n-1];
            valid[n] <= valid[n-1] && !rst;
        end
    end

    genvar i, j;
    generate
        for (j = 0; j < C; j = j + 1) begin : column
            wire [R-1:0] due;
            for (i = 0; i < R; i = i + 1) begin : row
                localparam AT = i*(C+1) + j;
                assign due[i] = valid[i+j+7] && marks[i+j+7][1];
                always @* if (age >= LEVELS) begin
                    assert (ctl_net[AT*4] == valid[i+j+1]);
                    if (valid[i+j+1]) begin
                        assert (ctl_net[AT*4+1 +: 3] == marks[i+j+1]);
                        assert (a_net[AT*W +: W] == a[i+j+1][i*W +: W]);
                        assert (b_net[(i*C+j)*W +: W] == b[i+j+1][j*W +: W]);
                    end
                end
            end
            always @* if (age >= LEVELS) begin
                assert (d_valid[j] == |due);
                assert (c_edge[j*W +: W] == c[j+1][j*W +: W]);
            end
        end
    endgenerate
endmodule
