import { defineConfig } from "vite";

export default defineConfig({
  // Relative, because Airflow may stand under any path.
  base: "./",
  build: { outDir: "../static", emptyOutDir: true, chunkSizeWarningLimit: 2000, assetsInlineLimit: 0 },
});
