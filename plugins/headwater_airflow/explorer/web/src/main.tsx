import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./App";
import { followColorMode } from "./theme";

import "@xyflow/react/dist/style.css";
import "./styles.css";

followColorMode();
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
