// Bundles the page into the two files that the wheel carries: page.js and page.css beside this
// folder. With an argument, into that folder instead.

import { build } from "esbuild";
import { fileURLToPath } from "node:url";
import { join, resolve } from "node:path";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv[2] ? resolve(process.argv[2]) : resolve(here, "..");
const note = "/* Built from streamplace/report/page/src by `make page`; do not edit. */";
const common = {
  absWorkingDir: here,
  banner: { js: note, css: note },
  bundle: true,
  charset: "ascii",
  legalComments: "none",
  logLevel: "warning",
  minify: true,
  target: "es2018",
};

await build({
  ...common,
  entryPoints: ["src/main.ts"],
  format: "iife",
  outfile: join(out, "page.js"),
});
await build({ ...common, entryPoints: ["src/page.css"], outfile: join(out, "page.css") });
