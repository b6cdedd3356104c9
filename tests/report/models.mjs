// Prints as JSON on which problems the models of the page differ from Python's values:
// node models.mjs page.js problems.jsonl, with a problem of a report in every line.

import { readFileSync } from "node:fs";
import vm from "node:vm";

vm.runInThisContext(readFileSync(process.argv[2], "utf8"), { filename: "page.js" });
const lines = readFileSync(process.argv[3], "utf8").trim().split("\n");
console.log(JSON.stringify(globalThis.differences(lines.map((line) => JSON.parse(line)))));
