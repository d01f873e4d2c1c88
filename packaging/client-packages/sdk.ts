/** The TypeScript SDK as an npm package: modules for `import`, the same for `require`, and their types. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Files, npmTarball } from "./archive.ts";

/** `root` is the top of the repository, `scratch` a directory within it for the compiler's output. */
export function sdkTarball(root: string, scratch: string): Uint8Array {
  const sdk = join(root, "sdk/typescript");
  const [modules, common] = [join(scratch, "esm"), join(scratch, "cjs")];
  compile(root, ["--project", sdk, "--outDir", modules]);
  // The compiler emits CommonJS if the nearest package.json of a source has that type.
  mkdirSync(common, { recursive: true });
  for (const name of ["src", "tsconfig.json"]) cpSync(join(sdk, name), join(common, name), { recursive: true });
  writeFileSync(join(common, "package.json"), COMMONJS);
  compile(root, ["--project", common, "--outDir", join(common, "dist"), "--verbatimModuleSyntax", "false"]);
  const files = {
    "package.json": readFileSync(join(sdk, "package.json")),
    "README.md": readFileSync(join(sdk, "README.md")),
    "dist/LICENSE": readFileSync(join(root, "LICENSE")),
    ...below(modules, "dist"),
    ...below(join(common, "dist"), "dist/cjs"),
    "dist/cjs/package.json": COMMONJS,
    // Types only, which are half of the package: stored once.
    "dist/cjs/generated/schemas.d.ts": `export type * from "../../generated/schemas.js" with { "resolution-mode": "import" };\n`,
  };
  rmSync(scratch, { recursive: true });
  return npmTarball(files);
}

const COMMONJS = `${JSON.stringify({ type: "commonjs" })}\n`;

function compile(root: string, args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(join(root, "node_modules/.bin/tsc"), args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`tsc ${args.join(" ")} failed:\n${stdout}${stderr}`);
}

/** All files of a directory, by their paths with `prefix` for the directory. */
function below(directory: string, prefix: string): Files {
  return Object.fromEntries(
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => {
        const path = join(parentPath, name);
        return [join(prefix, path.slice(directory.length + 1)), readFileSync(path)];
      }),
  );
}
