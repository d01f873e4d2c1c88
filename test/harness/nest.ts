/** Owns trees deeper than any path can say, made as a guest makes them: `mkdir d; cd d`, again and again. */
import { Beneath } from "../../daemon/host/files/beneath.ts";
import { toRaw } from "../../daemon/host/files/raw-path.ts";

/** So many directories in each other, each with so many empty files beside the next. Returns the last, to be closed. */
export async function makeNest(directory: string, levels: number, { files = 0 } = {}): Promise<Beneath> {
  let at = Beneath.open(directory);
  for (let level = 0; level < levels; level++) {
    using above = at;
    for (let file = 0; file < files; file++) await above.newFile(toRaw(`f${file}`))[Symbol.asyncDispose]();
    await above.makeDirectory(toRaw("d"), 0o755);
    at = above.directory(toRaw("d"));
  }
  return at;
}
