// Types of the web interface: the OpenAPI document on standard input becomes types, against which
// TypeScript checks the modules. Third-party modules are read, and not checked.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../../..");
const modules = resolve(root, "ganeti/web/js");
const made = resolve(root, "build/ui-types");

mkdirSync(made, { recursive: true });
writeFileSync(resolve(made, "openapi.d.ts"), astToString(await openapiTS(await text(process.stdin))));

const options = {
  allowJs: true,
  checkJs: true,
  noEmit: true,
  strict: true,
  noImplicitReturns: true,
  noUnusedLocals: true,
  skipLibCheck: true,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  target: ts.ScriptTarget.ES2023,
  lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
  types: [],
};
const files = ts.sys.readDirectory(modules, [".js"]);
const program = ts.createProgram([...files, resolve(here, "api.d.ts")], options);
const checked = [...files, resolve(here, "api.d.ts")].map((name) => program.getSourceFile(name));
const found = [
  ...program.getGlobalDiagnostics(),
  ...checked.flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]),
];
const host = { getCanonicalFileName: (name) => name, getCurrentDirectory: () => root, getNewLine: () => "\n" };
process.stdout.write(ts.formatDiagnostics(found, host));
console.log(`${files.length} modules, ${found.length} errors`);
process.exitCode = found.length ? 1 : 0;
