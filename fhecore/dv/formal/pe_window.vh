// What the checks of a processing element share: free inputs, constants of two banks that do not change, the
// element itself, and the steps of the last six edges.
//
// A check looks at one window of edges that starts in ANY state of the element (registers have no initial
// value). The data path has no loop but the accumulator, so a property of the window's end that holds for
// every start and every input holds at all times: an inductive proof whose hypothesis is the one on acc.
    (* anyconst *) reg [W-1:0] free_q0, free_q1;
    (* anyconst *) reg [W+4:0] free_mu0, free_mu1;
    localparam [2*W+1:0] UNIT = {2'b10, {(2*W){1'b0}}};  // 2^(2W+1)
    // A case split fixes the moduli: solvers find constant multiplications easy.
    wire [W-1:0] q0 = Q0 ? Q0 : free_q0;
    wire [W-1:0] q1 = Q1 ? Q1 : free_q1;
    wire [W+4:0] mu0 = Q0 ? UNIT / Q0 : free_mu0;
    wire [W+4:0] mu1 = Q1 ? UNIT / Q1 : free_mu1;

    wire [W-1:0] a_out, b_out, acc;
    wire         valid_out, first_out, last_out, bank_out, done;

    `FORM #(.W(W) `PARAMETERS) dut (
        .clk(clk), .rst(rst), .a_in(a_in), .b_in(b_in), .c_in(c_in), .valid_in(valid_in), .first_in(first_in),
        .last_in(last_in), .bank_in(bank_in), .q0(q0), .q1(q1), .mu0(mu0), .mu1(mu1), .a_out(a_out),
        .b_out(b_out), .valid_out(valid_out), .first_out(first_out), .last_out(last_out), .bank_out(bank_out),
        .acc(acc), .done(done)
    );

    // age: edges since the window's start, up to 7. Level n of a step: sampled n edges ago, not reset since.
    reg [2:0] age = 0;
    reg       valid [1:6];
    reg       first [1:6];
    reg       last [1:6];
    reg       bank [1:6];
    reg [W-1:0] a [1:6];
    reg [W-1:0] b [1:6];
    reg [W-1:0] c [1:6];
    reg [W-1:0] acc_before;
    reg         rst_before;
    integer n;
    always @(posedge clk) begin
        age <= age == 7 ? 7 : age + 1;
        acc_before <= acc;
        rst_before <= rst;
        valid[1] <= valid_in && !rst;
        first[1] <= first_in;
        last[1] <= last_in;
        bank[1] <= bank_in;
        a[1] <= a_in;
        b[1] <= b_in;
        c[1] <= c_in;
        for (n = 2; n <= 6; n = n + 1) begin
            valid[n] <= valid[n-1] && !rst;
            first[n] <= first[n-1];
            last[n] <= last[n-1];
            bank[n] <= bank[n-1];
            a[n] <= a[n-1];
            b[n] <= b[n-1];
            c[n] <= c[n-1];
        end
    end
