/** Setup of a ring that fails a test file if one of its daemons had a long turn. */
import { expect } from "vitest";
import { holdTurns } from "./turns.ts";

const { testPath } = expect.getState();
if (testPath !== undefined) holdTurns(testPath);
