/** Owns a command's stdin pipe: what the host sends goes in as fast as the command reads. */
import * as libc from "../libc.ts";

/** Takes over the write end of a pipe, feeds it until the end of `chunks`, and never fails. */
export async function feed(fd: number, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  libc.setNonBlocking(fd);
  // Bun writes to its own duplicate, so nothing of ours is left to be closed under it.
  const sink = Bun.file(fd).writer();
  libc.close(fd);
  try {
    for await (const chunk of chunks) {
      await sink.write(chunk);
      await sink.flush();
    }
    await sink.end();
  } catch {
    // The command closed its stdin, as it is free to; what is not said yet has no one to hear it.
    await Promise.resolve(sink.end()).catch(() => {});
  }
}
