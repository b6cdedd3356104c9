// Prints as JSON on which problems the models of the page differ from Python's values:
// node models.mjs page.js problems.jsonl, with a problem of a report in every line. With a rate and
// a speed behind, it prints the throughput of the first placements at so many times both; with the
// word sentences, what the page says of them; with lossesOf, what they carry without each device.

import { readFileSync } from "node:fs";
import vm from "node:vm";

vm.runInThisContext(readFileSync(process.argv[2], "utf8"), { filename: "page.js" });
const lines = readFileSync(process.argv[3], "utf8").trim().split("\n");
const problems = lines.map((line) => JSON.parse(line));
const [rate, speed] = process.argv.slice(4).map(Number);
const answer = rate
  ? globalThis.throughputsAt(problems, rate, speed)
  : globalThis[process.argv[4] ?? "differences"](problems);
console.log(JSON.stringify(answer));
