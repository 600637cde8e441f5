// The guided tour: eight steps through the story of the paper. Each sets a state, says what to see, and what to try.

export const TOUR = [
  {
    title: "Two lines",
    text: [
      "A model is a point w. A task is a line: every point on it solves the task. Learning a task moves w straight to the nearest point of its line. That step is called a projection.",
      "Both lines go through w\u22c6, which solves both tasks. But each projection onto one line moves w off the other. The loss of a task says how far w is from solving it (half the square of the distance, for these tasks), and forgetting is how much the loss of the tasks learned so far has grown since each was learned.",
      "Drag a circle to turn its line. At 90 degrees nothing is forgotten. Very close lines forget little too, but w hardly comes nearer to w\u22c6.",
    ],
    state: {family: "two_lines", parameters: {angle: 45}, order: "cyclic", last: 30, k: 6, quantity: "forgetting", step: 6},
    tries: [["30\u00b0", {parameters: {angle: 30}}], ["60\u00b0", {parameters: {angle: 60}}], ["90\u00b0", {parameters: {angle: 90}}]],
  },
  {
    title: "Repetition against randomness",
    text: [
      "Here are twelve lines that turn slowly, and then fast. Learned once each in the given order, they carry w away from all early tasks: forgetting is almost half of the largest that is possible.",
      "Repeating the same order helps only after the last line: it is at 90 degrees to the first, which then takes w to w\u22c6. A random order helps at once, even when each task is learned only once: not the repetition, but the randomness prevents the forgetting. With a random order the figures show expected values, the mean over all orders, and the path shows one of them.",
    ],
    state: {family: "catastrophic", parameters: {eps: 2.6}, order: "given", k: 12, quantity: "forgetting", step: 12},
    tries: [["given order", {order: "given", k: 12}], ["cyclic", {order: "cyclic", last: 100, k: 13}], ["random, each once", {order: "without", k: 12}]],
  },
  {
    title: "Why 1/k",
    text: [
      "Draw a task at random in each of k steps. A bound is a value that the expected loss or forgetting never exceeds, for any tasks of the same size. The dashed curve is the smallest bound that applies here; the other bounds are gray.",
      "The bounds of the paper fall like 1/k to the power of 1/4, for any number of tasks and of dimensions; later ones fall like 1/k. It cannot be faster: for each k some pair of lines (a triangle) has an expected loss of about 0.18/k. Both axes are logarithmic, so that 1/k is a straight line.",
    ],
    state: {family: "two_lines", parameters: {angle: 18}, order: "with", last: 300, k: 20, quantity: "loss", step: 20},
    tries: [["45\u00b0", {parameters: {angle: 45}}], ["18\u00b0", {parameters: {angle: 18}}], ["6\u00b0", {parameters: {angle: 6}, k: 182}]],
  },
  {
    title: "Noise",
    text: [
      "So far one point solved all tasks. With noise in the labels, the numbers that the tasks ask for, the lines no longer meet in one point, and each projection fits the noise of its own task.",
      "The expected loss then stops falling: it ends at a floor, however many steps follow, and so does forgetting. The bounds of the paper are for tasks with a common solution; the one shown here is of later work, and ends at a floor of its own.",
    ],
    state: {family: "gaussian", parameters: {T: 6, d: 2, rank: 1, seed: 3}, order: "with", noise: 0.1, last: 100, k: 40, quantity: "loss", step: 20},
    tries: [["no noise", {noise: 0}], ["noise 0.1", {noise: 0.1}], ["noise 0.3", {noise: 0.3}]],
  },
  {
    title: "Greedy fails",
    text: [
      "Would a clever order be better than a random one? The greedy order always learns the task that is farthest from w. That sounds best, and each step does bring w closest to w\u22c6.",
      "On these eleven tasks the greedy order, each task once, ends with a loss about five times the expected loss of a random order: every step turns w away from the tasks that were learned before.",
    ],
    state: {family: "greedy_failure", parameters: {}, order: "greedy", k: 11, quantity: "loss", step: 11},
    tries: [["greedy", {order: "greedy", k: 11}], ["random, each once", {order: "without", k: 11}]],
  },
  {
    title: "The worst tasks",
    text: [
      "How bad can random orders be? The triangles are the largest expected loss that any tasks of this number are known to reach at each k. Where a triangle is filled, a certificate proves that there is nothing worse. These three tasks are the worst for k = 4: there the curve touches its triangle.",
      "Turn a task as you like: at k = 4 the curve stays below the triangle. With many tasks the worst expected loss is between 0.227/k and 0.272/k for large k.",
    ],
    state: {family: "worst-3-4", parameters: {}, order: "with", last: 30, k: 4, quantity: "loss", step: 4},
    tries: [["worst for k = 1", {family: "worst-3-1", k: 1}], ["worst for k = 4", {family: "worst-3-4", k: 4}], ["levels, for k = 20", {family: "levels", last: 100, k: 20}]],
  },
  {
    title: "What ridge changes",
    text: [
      "A projection is one gradient step: downhill on half the squared distance to the line, with length 1. This is how the paper gets its bounds, from what is known about random gradient steps. A shorter step goes only a part of the way.",
      "Ridge learns a task with a penalty for leaving the last w, which makes the steps shorter. On the twelve lines in the given order, forgetting falls from 0.23 to 0.02 with strength 3, and the loss with it. With too much strength w hardly moves: nothing is forgotten, since little was learned. Forgetting is then below 0, for later tasks help with earlier ones.",
    ],
    state: {family: "catastrophic", parameters: {eps: 2.6}, order: "given", scheme: "ridge", lam: 3, k: 12, quantity: "forgetting", step: 12},
    tries: [["projection", {scheme: "kaczmarz"}], ["strength 1", {scheme: "ridge", lam: 1}], ["strength 3", {scheme: "ridge", lam: 3}], ["strength 30", {scheme: "ridge", lam: 30}]],
  },
  {
    title: "Your turn",
    text: [
      "Learning a task is a projection, which is one gradient step; so bounds on random gradient steps become bounds on the expected loss and forgetting of tasks learned in a random order.",
      "They fall with the number of steps for any number of tasks and of dimensions, even when each task is learned only once, so that randomness, and not repetition, is what prevents forgetting.",
    ],
    state: {family: "gaussian", parameters: {T: 6, d: 6, rank: 2, seed: 1}, order: "with", last: 100, k: 20, quantity: "forgetting", step: 20},
    tries: [["each task once", {order: "without", k: 6}], ["in turn", {order: "cyclic", k: 20}], ["at random", {order: "with", k: 20}]],
  },
];
