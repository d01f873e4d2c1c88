/** Trees deeper than any path can name, made as in a guest: `mkdir d; cd d`, repeatedly. */
import { Beneath } from "../../daemon/host/files/beneath.ts";
import { toRaw } from "../../daemon/host/files/raw-path.ts";

/** Makes `levels` nested directories, each with `files` empty files next to the subdirectory. Returns the last, which the caller closes. */
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
