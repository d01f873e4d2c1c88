/** Entry of a reader thread. */
import { serveReads } from "../db/readers/serve.ts";
import { READS } from "./reads.ts";

serveReads(READS);
