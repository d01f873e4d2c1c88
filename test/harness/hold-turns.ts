/** Setup of a ring whose test files fail by a long turn of one of their daemons. */
import { expect } from "vitest";
import { holdTurns } from "./turns.ts";

const { testPath } = expect.getState();
if (testPath !== undefined) holdTurns(testPath);
